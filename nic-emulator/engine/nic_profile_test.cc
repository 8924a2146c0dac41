// Makes of NICs as requesters, where they differ from the emulated NIC.
#include "nic-emulator/engine/nic_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nic-emulator/engine/ack_timeout.h"
#include "nic-emulator/engine/live_defaults.h"
#include "nic-emulator/engine/nic_testing.h"

namespace cepheus::rnic::testing {
namespace {

using ::testing::ElementsAre;

NicConfig config_of(const char* name) {
  NicConfig config;
  find_nic_profile(name)->apply(config);
  return config;
}

// Host a sends `packets` packets from PSN 100 on.
struct Sender {
  Sender(const char* name, std::uint32_t packets) : hosts({.mtu = 256}, config_of(name)) {
    hosts.a.send(1, 0, 256 * packets);
  }
  TwoHosts hosts;
};

TEST(NicProfile, RequestsAcksAsOftenAfterALoss) {
  Sender sender("connectx", 600);
  sender.hosts.b.receive(1, 0, 256 * 600);
  auto burst = sender.hosts.a.transmit_all();
  EXPECT_EQ(burst.size(), 600u);
  burst.erase(burst.begin());
  sender.hosts.b.deliver(burst);
  sender.hosts.a.deliver(sender.hosts.b.transmit_all());
  std::vector<std::uint32_t> requesting;
  for (const Packet& p : sender.hosts.a.transmit_all()) {
    if (p.requests_ack()) requesting.push_back(p.psn());
  }
  EXPECT_THAT(requesting, ElementsAre(355, 611, 699));
}

TEST(NicProfile, SendsAllPacketsAgainAfterAnRnrWaitOrATimeOut) {
  for (const auto& [name, again] :
       {std::pair("ours", 1u), std::pair("rxe", 20u), std::pair("connectx", 20u)}) {
    Sender sender(name, 20);
    TwoHosts& hosts = sender.hosts;
    EXPECT_EQ(hosts.a.transmit_all().size(), 20u);
    std::vector<Packet> repeated;
    for (int i = 0; i < 8 && repeated.empty(); ++i) {  // a deadline may only move
      ASSERT_TRUE(hosts.pass_deadline());
      repeated = hosts.a.transmit_all();
    }
    EXPECT_EQ(repeated.size(), again) << name << " after a time-out";
    hosts.b.deliver(repeated);  // has no receive
    hosts.a.deliver(hosts.b.transmit_all());
    ASSERT_TRUE(hosts.pass_deadline());
    EXPECT_EQ(hosts.a.transmit_all().size(), again) << name << " after an RNR wait";
  }
}

TEST(NicProfile, ReportsHowLateItRepeats) {
  const auto latest = [](const char* name, std::uint8_t code) {
    NicConfig live = live_defaults(4096, {});
    find_nic_profile(name)->apply(live);
    return std::chrono::floor<milliseconds>(latest_repeat(live, code)).count();
  };
  EXPECT_EQ(latest("ours", 14), 67);
  EXPECT_EQ(latest("ours", 18), 1'073);
  EXPECT_EQ(latest("connectx", 14), 4'294);
  EXPECT_EQ(latest("connectx", 18), 4'300) << "ranges end here";
  EXPECT_EQ(latest("irdma", 18), 67) << "its own code is 14";
}

TEST(NicProfile, IsFoundByItsName) {
  EXPECT_EQ(find_nic_profile("ours"), &nic_profiles().front());
  EXPECT_EQ(find_nic_profile("infinity"), nullptr);
}

}  // namespace
}  // namespace cepheus::rnic::testing
