// The path MTU and the window of a group at its leader and its members: the first comes with
// CONNECT, the second with ACTIVATE and later REFRESHes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/registration.h"
#include "controller/test_network.h"

namespace cepheus::mrp {
namespace {

using namespace test;
using State = Registration::State;
using wire::MrpType;

MrpMessage with_window(MrpMessage m, std::uint32_t window) {
  m.path = wire::MrpPath{0, window};
  return m;
}

std::vector<std::uint32_t> windows_of(const Network& net) {
  std::vector<std::uint32_t> all;
  for (const auto& [address, member] : net.hosts) all.push_back(member.path().window);
  return all;
}

TEST(Registration, ActivatesWithTheSmallestWindowOfAllConfirms) {
  StartedNetwork net(3);
  net.lose = [&](const Network::Datagram& d) {
    return is(d, MrpType::kConfirm) && d.message.header.flags == 1;
  };
  net.run_until_idle();
  net.deliver({kSwitch, with_window(confirm_for({1}), 20)});
  net.deliver({kSwitch, with_window(confirm_for({2}), 30)});
  net.run_until_idle();
  ASSERT_EQ(net.leader.state(), State::kActive);
  EXPECT_EQ(net.leader.path().window, 20u);
  EXPECT_EQ(windows_of(net), (std::vector<std::uint32_t>{20, 20}));
}

// Portions depend on the first window, and must be the same at the leader and all members.
TEST(Registration, RepeatsActivateWithItsFirstWindow) {
  StartedNetwork net(3);
  net.lose = [&](const Network::Datagram& d) { return is(d, MrpType::kActivate); };
  net.deliver({kSwitch, with_window(confirm_for({1}), 20)});
  net.run_until_idle();
  ASSERT_EQ(net.leader.state(), State::kActivating);
  net.deliver({kSwitch, with_window(of_group(MrpType::kReport), 8)});
  std::vector<std::uint32_t> first;
  net.lose = [&](const Network::Datagram& d) {
    if (is(d, MrpType::kActivate)) first.push_back(d.message.path->window);
    return false;
  };
  net.run(net.now + 1s);
  ASSERT_EQ(net.leader.state(), State::kActive);
  EXPECT_THAT(first, testing::Each(20u));
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(net.leader.first_path().window, 20u);
  EXPECT_EQ(windows_of(net), (std::vector<std::uint32_t>{8, 8})) << "and then the newest";
}

std::vector<std::uint16_t> mtus_of(const Network& net) {
  std::vector<std::uint16_t> all;
  for (const auto& [address, member] : net.hosts) all.push_back(member.path().mtu);
  return all;
}

TEST(Registration, ConnectsAllWithTheLeastPathMtu) {
  for (const bool leader_is_least : {false, true}) {
    RegistrationConfig config = leader_config();
    config.path_mtu = leader_is_least ? 512 : 4096;
    Network net(4, config);
    net.hosts.at(host(1)) = Membership(member(1), 4096);
    net.hosts.at(host(2)) = Membership(member(2), 1024);
    net.merges = true;
    std::optional<MrpMessage> connect;
    net.lose = [&](const Network::Datagram& d) {
      if (is(d, MrpType::kConnect)) connect = d.message;
      return false;
    };
    ASSERT_TRUE(net.start());
    net.run_until_idle();
    ASSERT_EQ(net.leader.state(), State::kActive);
    EXPECT_EQ(connect->header.flags, 3) << "members behind the leader's switch";
    const std::uint16_t least = leader_is_least ? 512 : 1024;
    EXPECT_EQ(net.leader.path().mtu, least);
    EXPECT_EQ(mtus_of(net), (std::vector<std::uint16_t>{least, least, least}));
  }
}

// A queue pair can't change it any more.
TEST(Registration, KeepsThePathMtuOfItsQueuePairs) {
  StartedNetwork net(2);
  MrpMessage odd = confirm_for({1});
  odd.path = wire::MrpPath{1400, 20};
  net.deliver({kSwitch, odd});
  net.run_until_idle();
  ASSERT_EQ(net.leader.state(), State::kActive);
  EXPECT_EQ(mtus_of(net), std::vector<std::uint16_t>{1024}) << "what fits";
  MrpMessage later = of_group(MrpType::kReport);
  later.path = wire::MrpPath{512, 8};
  net.deliver({kSwitch, later});
  net.run_until_idle();
  EXPECT_EQ(mtus_of(net), std::vector<std::uint16_t>{1024});
  EXPECT_EQ(windows_of(net), std::vector<std::uint32_t>{8});
}

// Members are connected, or about to be: its first long packet would end the group.
TEST(Registration, FailsIfThePathMtuFallsWhileMembersConnect) {
  StartedNetwork net(3);
  MrpMessage confirm = confirm_for({1, 2});
  confirm.path = wire::MrpPath{4096, 20};
  net.deliver({kSwitch, confirm});
  ASSERT_EQ(net.leader.state(), State::kConnecting);
  confirm.header.flags = static_cast<std::uint16_t>(MrpType::kConnect);
  confirm.path = wire::MrpPath{1024, 20};
  net.deliver({kSwitch, confirm});
  EXPECT_EQ(net.leader.state(), State::kFailed);
  EXPECT_EQ(net.leader.reject_reason(), wire::MrpReject::kTooLong);
  EXPECT_THAT(net.leader.error().text,
              testing::HasSubstr("packets of 4096 bytes do not fit, those of 1024 do"));
}

// The switch that answers may be the only one that still knows the group.
TEST(Registration, TakesAWindowForNoSignOfTheSwitchesBehind) {
  StartedNetwork net(3);
  net.run_until_idle();
  const Instant before = net.leader.last_message_at();
  net.now += 1s;
  net.deliver({kSwitch, with_window(of_group(MrpType::kReport), 8)});
  EXPECT_EQ(net.leader.last_message_at(), before);
  net.deliver({kSwitch, of_group(MrpType::kReport)});
  EXPECT_EQ(net.leader.last_message_at(), net.now);
}

// A REFRESH gets no answer, so several follow each other.
TEST(Registration, SpreadsAChangedWindowAndRepeatsIt) {
  StartedNetwork net(3);
  net.run_until_idle();
  unsigned lost = 0;
  net.lose = [&](const Network::Datagram& d) { return is(d, MrpType::kRefresh) && ++lost == 1; };
  net.deliver({kSwitch, with_window(of_group(MrpType::kReport), 8)});
  net.run_until_idle();
  EXPECT_EQ(windows_of(net), (std::vector<std::uint32_t>{0, 0}));
  net.run(net.now + 1s);
  EXPECT_EQ(windows_of(net), (std::vector<std::uint32_t>{8, 8}));
  net.deliver({kSwitch, with_window(of_group(MrpType::kReport), 0)});
  net.run_until_idle();
  EXPECT_EQ(windows_of(net), (std::vector<std::uint32_t>{0, 0})) << "no limit again";
  lost = 1;
  net.run(net.now + 20min);
  EXPECT_EQ(net.leader.state(), State::kActive);
  EXPECT_LT(lost, 25u) << "and then as often as ever";
}

}  // namespace
}  // namespace cepheus::mrp
