// Limits of one host's registrations: tables, requests per second, time without activation.
#include <gtest/gtest.h>

#include "switch-emulator/engine/registration/host_rate.h"
#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::MrpType;

// REGISTER of a host's group number `n`, with host 2 as the other member.
void register_one(TestNetwork& net, std::size_t leader, std::uint32_t n) {
  auto message =
      TestNetwork::message_about(MrpType::kRegister, {net.member(leader), net.member(2)});
  message.header.mcst_id = McstId(McstId(198, 18, 1, 0).value() + n);
  net.send_message(leader, message);
}

TEST(TableQuota, LeavesTablesForOtherHosts) {
  auto net = make_star(3, false, [](SwitchConfig& c) {
    c.max_groups = 8;
    c.max_groups_per_host = 6;
  });
  for (std::uint32_t n = 0; n < 8; ++n) register_one(*net, 0, n);
  EXPECT_EQ(net->sw(0).group_count(), 6u);
  EXPECT_EQ(net->inbox(0), Texts(2, "reject e1 too many groups of one host"));
  register_one(*net, 1, 100);
  EXPECT_EQ(net->sw(0).group_count(), 7u);
  EXPECT_EQ(net->count(Counter::kRefusedQuota), 2u);
}

TEST(TableQuota, CountsOnlyExistingTables) {
  auto net = make_star(3, false, [](SwitchConfig& c) { c.max_groups_per_host = 1; });
  for (std::uint16_t epoch = 1; epoch <= 3; ++epoch) {
    net->register_group(0, epoch);
    net->control(0, MrpType::kActivate, epoch);
    ASSERT_EQ(net->sw(0).group_count(), 1u) << epoch;
    net->control(0, MrpType::kUnregister, epoch);
    ASSERT_EQ(net->sw(0).group_count(), 0u) << epoch;
    net->advance(seconds(6));  // the id is a tombstone
  }
}

TEST(ChangedSettings, ReachDeadlinesThatAreSet) {
  auto net = make_star(3, false, [](SwitchConfig& c) { c.pending_age = seconds(100); });
  register_one(*net, 0, 0);
  net->advance(seconds(2));
  ASSERT_EQ(net->sw(0).group_count(), 1u);
  SwitchConfig next = net->config(0);
  next.pending_age = seconds(1);
  net->sw(0).take_settings(next);
  net->advance(milliseconds(1));
  EXPECT_EQ(net->sw(0).group_count(), 0u) << "it was never activated";
}

TEST(ChangedSettings, SlowRegistrationDown) {
  auto net = make_star(3, false, [](SwitchConfig&) {});
  SwitchConfig next = net->config(0);
  next.register_rate = 4;  // one at once
  net->sw(0).take_settings(next);
  for (std::uint32_t n = 0; n < 10; ++n) register_one(*net, 0, n);
  EXPECT_LE(net->sw(0).group_count(), 2u);
  EXPECT_GE(net->count(Counter::kDropMrpRate), 8u);
}

TEST(RegistersRate, BoundsTheGroupsOfAHost) {
  auto net = make_star(3, false, [](SwitchConfig& c) {
    c.register_rate = 100;
    c.max_groups_per_host = 1024;
  });
  constexpr std::uint32_t kRequests = 1000;
  for (std::uint32_t n = 0; n < kRequests; ++n) {
    register_one(*net, 0, n);
    if (n % 100 == 99) net->advance(milliseconds(10));
  }
  const std::size_t taken = net->sw(0).group_count();
  EXPECT_NEAR(static_cast<double>(taken), 25 + 10, 2) << "the burst, and 0.1 s";
  EXPECT_EQ(net->count(Counter::kDropMrpRate), kRequests - taken);
  register_one(*net, 1, kRequests);
  EXPECT_EQ(net->sw(0).group_count(), taken + 1) << "another host has its own";
  net->advance(seconds(1));
  register_one(*net, 0, kRequests + 1);
  EXPECT_EQ(net->inbox(2).back(), "register e1 10.0.0.3") << "it was no punishment";
}

TEST(RegistersRate, IsNotSpentByRepeatsAndPartsOfOneRegistration) {
  auto net = make_star(200, false, [](SwitchConfig& c) { c.register_rate = 1; });
  for (int repeat = 0; repeat < 1000; ++repeat) net->register_group(0, 1);  // in three datagrams
  EXPECT_EQ(net->count(Counter::kDropMrpRate), 0u);
  EXPECT_EQ(net->view().paths.size(), 200u);
}

// A switch in the middle can't distinguish hosts: all come by the same trunk.
TEST(RegistersRate, IsForHostsPortsOnly) {
  SwitchConfig config;
  config.register_rate = 1;
  config.ports.resize(2);
  config.ports[1].kind = PortKind::kSwitch;
  HostRate rate(config, &SwitchConfig::register_rate);
  const Instant now{seconds(1)};
  EXPECT_TRUE(rate.admit(PortId(0), now));
  EXPECT_FALSE(rate.admit(PortId(0), now));
  for (int n = 0; n < 100; ++n) EXPECT_TRUE(rate.admit(PortId(1), now));
  EXPECT_TRUE(rate.admit(PortId(0), now + seconds(1)));
}

TEST(PendingAge, FreesTablesThatAreNeverActivated) {
  auto net = make_star(3, false);
  net->register_group(0, 1);
  net->advance(seconds(4));
  net->register_group(0, 1);  // the leader is alive
  net->advance(seconds(4));
  EXPECT_EQ(net->sw(0).group_count(), 1u);
  net->advance(seconds(2));
  EXPECT_EQ(net->sw(0).group_count(), 0u);
}

// Repeats of REGISTER do not reach a switch with all members confirmed: a leader refreshes it.
TEST(PendingAge, CountsFromTheLeadersLastMessageAtEverySwitch) {
  auto net = make_pair_of_switches(false);
  net->register_group(0, 1);
  net->confirm(2, MrpType::kRegister);
  net->confirm(3, MrpType::kRegister);
  for (int n = 0; n < 20; ++n) {
    net->advance(wire::times::kRefreshPending);
    net->control(0, MrpType::kRefresh, 1);
  }
  EXPECT_EQ(net->sw(0).group_count(), 1u);
  EXPECT_EQ(net->sw(1).group_count(), 1u);
  net->advance(wire::times::kSwitchPending);
  EXPECT_EQ(net->sw(0).group_count() + net->sw(1).group_count(), 0u);
}

TEST(PendingAge, DoesNotTouchActiveTables) {
  auto net = make_star(3);
  net->advance(seconds(60));
  EXPECT_EQ(net->sw(0).group_count(), 1u);
}

}  // namespace
}  // namespace cepheus::fabric
