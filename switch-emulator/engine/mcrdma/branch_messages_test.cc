// The messages of sender groups on their way down connected switches: shares, windows, and the
// number of copies (docs/protocol.md, "Sender groups").
#include "switch-emulator/engine/mcrdma/branch_messages.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/mcrdma/test_sender.h"

namespace cepheus::fabric {
namespace {

constexpr std::uint64_t kWhole = wire::SenderGroupMessage::kWholeShare;

// The shares that the messages to a host carry.
std::vector<std::uint64_t> shares(const TestSender& group, std::size_t host) {
  std::vector<std::uint64_t> all;
  for (const auto& each : group.messages_to(host)) all.push_back(each.share);
  return all;
}

TEST(SenderGroups, AShareIsDividedAmongBranchesAndTheirEqualWays) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {1, 3, 4});  // host 1 is here; two spines lead to hosts 3 and 4
  group.install();
  const std::uint64_t part = kWhole / 3, rest = kWhole % 3;
  EXPECT_EQ(shares(group, 1), std::vector{part + rest});
  EXPECT_EQ(shares(group, 3), std::vector(2, part - part / 2));
  EXPECT_EQ(shares(group, 4), std::vector(2, part / 2));
}

// The switch sets the receiver's queue pair, so that no later switch needs a record.
TEST(SenderGroups, ABranchOfOneReceiverGetsOneMessageUnlessItMeasures) {
  for (const bool measures : {false, true}) {
    auto net = make_leaf_spine();
    TestSender group(*net, 0, {1, 3});
    auto m = group.message(wire::MrpType::kInstall);
    m.header.flags = measures ? wire::SenderGroupMessage::kMeasures : 0;
    group.send_message(0, m, group.alias());
    EXPECT_EQ(shares(group, 1).size(), 1u);
    EXPECT_EQ(shares(group, 3).size(), measures ? 2u : 1u);
    EXPECT_EQ(group.share_that_came(), kWhole);
  }
}

TEST(SenderGroups, OnlyChangedBranchesGetMessagesOfAChangedRoute) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {1, 3, 4});
  group.set_up();
  net->set_port(0, net->port_between(0, 3), false);
  EXPECT_EQ(shares(group, 1), std::vector<std::uint64_t>());
  for (const std::size_t r : {3, 4}) {
    EXPECT_EQ(shares(group, r), std::vector<std::uint64_t>{0}) << "no sender waits for it";
  }
}

// As a receiver gets it with INSTALL, and returns it to the sender.
TEST(SenderGroups, AWindowIsThatOfTheSmallestQueueOnTheWay) {
  auto net = make_leaf_spine(net::SenderGroups::kEverywhere, [](SwitchConfig& config) {
    for (PortConfig& port : config.ports) {
      port.queue_frames = port.kind == net::PortKind::kSwitch ? 40 : 64;
    }
  });
  TestSender group(*net, 0, {1, 3});
  group.install();
  EXPECT_EQ(group.messages_to(1).at(0).window, 64u / 2) << "behind the sender's own switch";
  EXPECT_EQ(group.messages_to(3).at(0).window, 40u / 2) << "behind trunks; half stays free";
}

TEST(SenderGroups, AWindowIsThatOfAReceiversRing) {
  auto net = make_star(3, false, [](SwitchConfig& config) {
    for (PortConfig& port : config.ports) port.ring_window = 64;
  });
  TestSender group(*net, 0, {1, 2});
  group.install();
  EXPECT_EQ(group.messages_to(1).at(0).window, 64u);
}

TEST(SenderGroups, AWindowPassesASwitchThatAnnouncesNone) {
  auto net = make_leaf_spine(net::SenderGroups::kEverywhere, [](SwitchConfig& config) {
    config.rules.announced_window = false;
    for (PortConfig& port : config.ports) port.queue_frames = 64;
  });
  TestSender group(*net, 0, {1, 3});
  group.install();
  EXPECT_EQ(group.messages_to(1).at(0).window, 0u) << "no limit";
}

}  // namespace
}  // namespace cepheus::fabric
