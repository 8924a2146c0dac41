// The end of sender groups on connected switches: REMOVE to present and former receivers
// (docs/protocol.md, "Sender groups").
#include "switch-emulator/engine/mcrdma/remover.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/mcrdma/test_sender.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

TEST(SenderGroups, ARemovedGroupLeavesNothing) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {3, 4, 6});
  group.set_up();
  group.remove();
  EXPECT_EQ(group.share_that_came(), wire::SenderGroupMessage::kWholeShare);
  for (std::size_t s = 0; s < 5; ++s) EXPECT_TRUE(net->sw(s).sender_groups().empty()) << s;
  net->clear();
  group.remove();  // a repeat: nodes behind this one may have missed the first
  EXPECT_EQ(group.share_that_came(), wire::SenderGroupMessage::kWholeShare);
}

TEST(SenderGroups, AnUnreachableReceiverKeepsNoRemoveFromTheOthers) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {1, 3, 4, 6});
  group.set_up();
  net->set_port(0, net->port_of(1), false);
  net->clear();
  group.remove();
  for (const std::size_t r : {3, 4, 6}) {
    ASSERT_FALSE(group.messages_to(r).empty()) << r;
    EXPECT_EQ(group.messages_to(r).back().header.type, wire::MrpType::kRemove);
  }
  for (std::size_t s = 0; s < 5; ++s) EXPECT_TRUE(net->sw(s).sender_groups().empty()) << s;
}

TEST(SenderGroups, ARemoveThatReachesNoReceiverEndsTheGroup) {
  auto [net, group] = set_up_star(2, {1});
  net->set_port(0, net->port_of(1), false);
  group.remove();
  EXPECT_TRUE(net->sw(0).sender_groups().empty());
}

// Two receivers at leaf 1 make it branch. When one is evicted, the spine sends to the other
// directly, and leaf 1 gets no more messages of the group.
TEST(SenderGroups, ARemovedGroupLeavesNothingWhereReceiversWereEvicted) {
  for (const auto how : {net::SenderGroups::kEverywhere, net::SenderGroups::kRacks}) {
    for (const std::size_t out : {3, 4}) {
      auto net = make_leaf_spine(how);
      TestSender group(*net, 0, {6, 3, 4});
      group.set_up();
      ASSERT_FALSE(net->sw(1).sender_groups().empty());
      group.set_receivers({6, 7 - out});
      for (group.epoch = 2; group.epoch < 4; ++group.epoch) group.install(false);
      net->set_port(1, net->port_of(out), false);
      net->clear();
      --group.epoch;
      group.remove();
      EXPECT_GE(group.share_that_came(), wire::SenderGroupMessage::kWholeShare);
      for (std::size_t s = 0; s < 5; ++s) EXPECT_TRUE(net->sw(s).sender_groups().empty()) << s;
    }
  }
}

TEST(SenderGroups, ARemoveInTheSendersNameTakesNoFormerPath) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {6, 3, 4});
  group.set_up();
  group.set_receivers({6, 3});
  group.epoch = 2;
  group.install(false);
  net->advance(2s);  // since the last INSTALL
  net->clear();
  auto m = group.message(wire::MrpType::kRemove);
  m.share = 0;
  group.send_message(0, m, group.alias());
  ASSERT_FALSE(group.messages_to(3).empty());
  for (const std::size_t r : {3, 4, 6}) {
    for (const auto& received : group.messages_to(r)) EXPECT_EQ(received.share, 0u) << r;
  }
}

}  // namespace
}  // namespace cepheus::fabric
