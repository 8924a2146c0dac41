// The path MTU of a sender group: the least of all ways to its receivers, and ports that are too small
// for it later (docs/protocol.md, "What a way can take").
#include <gtest/gtest.h>

#include "switch-emulator/engine/mcrdma/test_sender.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using wire::SenderGroupMessage;

constexpr std::size_t kSpine = 3, kOtherSpine = 4;

SenderGroupMessage install_with(const TestSender& group, std::uint16_t flags, std::uint16_t mtu) {
  auto m = group.message(wire::MrpType::kInstall);
  m.header.flags = flags;
  m.path_mtu = mtu;
  return m;
}

// Of all copies of one INSTALL that reach the receiver.
std::uint16_t least_measured(TestSender& group, std::size_t receiver) {
  constexpr std::uint16_t kFlags = SenderGroupMessage::kFresh | SenderGroupMessage::kMeasures;
  group.send_message(0, install_with(group, kFlags, 4096), group.alias());
  EXPECT_EQ(group.share_that_came(), SenderGroupMessage::kWholeShare);
  std::uint16_t least = 0xFFFF;
  for (const auto& each : group.messages_to(receiver)) least = std::min(least, each.path_mtu);
  return least;
}

void expect_too_long(const TestSender& group, const wire::MrpMember& receiver) {
  const auto reported = group.messages_to(0);
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_EQ(reported[0].header.type, wire::MrpType::kReject);
  EXPECT_EQ(reported[0].header.flags, static_cast<std::uint16_t>(wire::MrpReject::kTooLong));
  EXPECT_EQ(reported[0].receivers[0], receiver) << "with its control port";
}

TEST(SenderGroups, AMeasuringInstallBringsTheLeastPathMtuOfThePorts) {
  auto net = make_leaf_spine();
  net->sw(1).set_mtu(net->port_of(3), 2200);
  net->sw(2).set_mtu(net->port_of(6), kUsualFrame);
  TestSender group(*net, 0, {1, 3, 4, 6});  // leaf 1 branches, leaf 2 does not
  EXPECT_EQ(least_measured(group, 1), 4096);
  const auto least = [&](std::size_t host) { return group.messages_to(host).at(0).path_mtu; };
  EXPECT_EQ(least(3), 2048);
  EXPECT_EQ(least(4), 4096);
  EXPECT_EQ(least(6), 1024);
}

// Later INSTALLs have the group's path MTU.
TEST(SenderGroups, AnInstallThatDoesNotMeasureKeepsItsPathMtu) {
  auto net = make_leaf_spine();
  net->sw(2).set_mtu(net->port_of(6), 2200);
  TestSender group(*net, 0, {3, 6});
  group.send_message(0, install_with(group, SenderGroupMessage::kFresh, 1024), group.alias());
  for (const std::size_t host : {3, 6}) EXPECT_EQ(group.messages_to(host).at(0).path_mtu, 1024);
}

// A flow takes one of them, and which one depends on its ports and QPNs.
TEST(SenderGroups, AReceiverBehindEqualWaysHasTheLeastPathMtuOfAll) {
  for (const auto how : {net::SenderGroups::kEverywhere, net::SenderGroups::kRacks}) {
    for (const std::size_t spine : {kSpine, kOtherSpine}) {
      auto net = make_leaf_spine(how);
      net->sw(spine).set_mtu(net->port_between(spine, 2), kUsualFrame);
      TestSender one(*net, 0, {6});
      EXPECT_EQ(least_measured(one, 6), 1024);
    }
  }
}

// Its queue pairs keep their path MTU when the trunk comes back.
TEST(SenderGroups, APathMtuIsAlsoThatOfTrunksThatAreDown) {
  for (const std::size_t near : {0, 2}) {
    auto net =
        make_leaf_spine(net::SenderGroups::kEverywhere, [](SwitchConfig& c) { c.hello = 25ms; });
    for (const auto& [a, b] : {std::pair{near, kSpine}, std::pair{kSpine, near}}) {
      net->sw(a).set_mtu(net->port_between(a, b), kUsualFrame);
    }
    for (const std::size_t leaf : {0, 2}) {
      net->set_port(kSpine, net->port_between(kSpine, leaf), false);
      net->set_port(leaf, net->port_between(leaf, kSpine), false);
    }
    TestSender group(*net, 0, {6});
    EXPECT_EQ(least_measured(group, 6), 1024) << near;
  }
}

TEST(SenderGroups, APortThatFallsIsReportedToTheSenderOnce) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {6, 7});
  group.set_up();
  const std::size_t leaf = 2;
  net->sw(leaf).set_mtu(net->port_of(6), 100);
  for (const std::int64_t psn : {0, 1}) group.data(psn);
  EXPECT_EQ(net->count(Counter::kDropTooLong, leaf), 2u);
  expect_too_long(group, net->member(6));
}

// One group branches at the spines, the other one nowhere.
TEST(SenderGroups, AnInstallWithALargerPathMtuThanAPortIsRefused) {
  for (const auto& receivers : {std::vector<std::size_t>{6, 3}, std::vector<std::size_t>{6}}) {
    auto net = make_leaf_spine();
    TestSender group(*net, 0, receivers);
    group.send_message(0, install_with(group, SenderGroupMessage::kFresh, 4096), group.alias());
    net->clear();
    net->sw(2).set_mtu(net->port_of(6), kUsualFrame);
    group.send_message(0, install_with(group, 0, 4096), group.alias());
    const auto reported = group.messages_to(0);
    ASSERT_GE(reported.size(), 1u);
    EXPECT_EQ(reported[0].header.type, wire::MrpType::kReject);
    EXPECT_EQ(reported[0].header.flags, static_cast<std::uint16_t>(wire::MrpReject::kTooLong));
    EXPECT_EQ(reported[0].receivers[0], net->member(6)) << "with its control port";
    EXPECT_TRUE(group.messages_to(6).empty());
  }
}

}  // namespace
}  // namespace cepheus::fabric
