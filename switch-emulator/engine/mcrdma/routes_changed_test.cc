// Sender groups when routes change: switches build them anew (docs/protocol.md, "Sender groups").
#include <gtest/gtest.h>

#include "switch-emulator/engine/mcrdma/test_sender.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

TEST(SenderGroups, AChangedRouteRebuildsItsGroups) {
  auto net = make_leaf_spine();
  TestSender touched(*net, 0, {3, 4, 6}), apart(*net, 1, {2});
  apart.virtual_qpn = Qpn(0xC00077);
  touched.set_up();
  apart.set_up();
  net->set_port(0, net->port_between(0, 3), false);
  EXPECT_EQ(net->count(Counter::kSenderRebuilt, 0), 1u);  // of two groups
  // A new message to the one spine that is left.
  EXPECT_EQ(net->count(Counter::kSenderInstall, 4), 2u);
  net->clear();
  touched.data(0);
  for (const std::size_t r : {3, 4, 6}) EXPECT_EQ(net->inbox(r), Texts({"data 0"}));
  apart.data(0);
  EXPECT_EQ(net->inbox(2), Texts({"data 0"}));
}

// Receivers see by the flag that other receivers may not be connected.
TEST(SenderGroups, AChangedRouteRepeatsTheFlagOfTheLastInstall) {
  for (const bool is_fresh : {true, false}) {
    auto net = make_leaf_spine();
    TestSender group(*net, 0, {3, 6});
    group.install(is_fresh);
    net->clear();
    net->set_port(0, net->port_between(0, 3), false);
    ASSERT_EQ(group.messages_to(3).size(), 1u);
    const wire::SenderGroupMessage received = group.messages_to(3)[0];
    EXPECT_EQ(received.share, 0u);
    EXPECT_EQ(received.header.flags, is_fresh ? wire::SenderGroupMessage::kFresh : 0);
  }
}

// Copies for leaf 2 would be dropped at the cut spine until the next INSTALL.
TEST(SenderGroups, AWithdrawnRouteRebuildsWhatItTouches) {
  for (const std::size_t spine : {3, 4}) {
    auto net =
        make_leaf_spine(net::SenderGroups::kEverywhere, [](SwitchConfig& c) { c.hello = 25ms; });
    TestSender group(*net, 0, {3, 6});
    group.set_up();
    net->set_port(spine, net->port_between(spine, 2), false);
    net->set_port(2, net->port_between(2, spine), false);
    EXPECT_EQ(net->count(Counter::kSenderRebuilt, 0), 1u) << spine;
    net->clear();
    group.data(0);
    EXPECT_EQ(net->inbox(3), Texts({"data 0"})) << spine;
    EXPECT_EQ(net->inbox(6), Texts({"data 0"})) << spine;
  }
}

// The sender's switch does not learn that spine 3 has lost leaf 1, and repeats INSTALLs over it. Host 3
// is reached over spine 4.
TEST(SenderGroups, WithoutHellosADeadPathEvictsNoReceiver) {
  auto net = make_leaf_spine(net::SenderGroups::kEverywhere,
                             [](SwitchConfig& c) { c.hello = Duration(0); });
  TestSender group(*net, 0, {3, 6});
  group.set_up();
  net->set_port(3, net->port_between(3, 1), false);
  net->set_port(1, net->port_between(1, 3), false);
  net->clear();
  group.install(false);
  EXPECT_EQ(net->count(Counter::kSenderUnreachable, 3), 1u);
  EXPECT_TRUE(group.messages_to(0).empty());
  net->clear();
  group.attempt = 1;
  group.install();  // during set-up the receiver must be known
  ASSERT_EQ(group.messages_to(0).size(), 1u);
  EXPECT_EQ(group.messages_to(0)[0].header.type, wire::MrpType::kReject);
}

// Spine 3 has got no message since its trunk to the sender's leaf went dark, and sends REMOVE to
// those behind it.
TEST(SenderGroups, ARemoveOfAnOldPathEndsNothingWhereTheSenderUsesANewOne) {
  for (const bool alias_leaves : {false, true}) {
    auto net =
        make_leaf_spine(net::SenderGroups::kEverywhere, [](SwitchConfig& c) { c.age = 10s; });
    TestSender group(*net, 0, {3, 4, 6});
    group.set_up();
    net->set_port(0, net->port_between(0, 3), false);
    net->set_port(3, net->port_between(3, 0), false);
    if (alias_leaves) {
      group.set_receivers({4, 6});
      group.epoch = 2;
    }
    for (int second = 0; second < 12 && !net->sw(3).sender_groups().empty(); ++second) {
      group.install(false);
      net->advance(1s);
    }
    ASSERT_TRUE(net->sw(3).sender_groups().empty());
    net->clear();
    group.data(0);
    for (const std::size_t r : {4, 6}) EXPECT_EQ(net->inbox(r), Texts({"data 0"}));
  }
}

}  // namespace
}  // namespace cepheus::fabric
