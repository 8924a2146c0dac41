// TREE records of a reduction group: three switches in a row, host 0 leads at the first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using wire::MrpTree;
using wire::MrpType;

class TreeRecords : public testing::Test {
 protected:
  // `last`: hosts at the third switch.
  explicit TreeRecords(std::size_t last = 3) {
    for (int s = 0; s < 3; ++s) net_.add_switch();
    net_.link(0, 1);
    net_.link(1, 2);
    for (int h = 0; h < 2; ++h) net_.add_host(0);
    net_.add_host(1);
    for (std::size_t h = 0; h < last; ++h) net_.add_host(2);
    net_.start();
    net_.reduction = wire::MrpReduction{wire::MrpReduction::kValues, 4096, 8};
    net_.on_registration = [this](std::size_t from, std::size_t to, const wire::MrpMessage& m) {
      if (m.header.type == type_) sent_.push_back({from, to, m.tree});
    };
  }
  void register_all() { net_.register_group(0, 1, {}, wire::MrpHeader::kLossEnds); }
  void confirm(std::initializer_list<std::size_t> hosts) {
    for (const std::size_t host : hosts) net_.confirm(host, MrpType::kRegister);
  }
  void activate(const std::vector<wire::MrpMember>& members = {}) {
    type_ = MrpType::kActivate;
    net_.control(0, type_, 1, members);
  }
  void connect(std::initializer_list<std::size_t> hosts) {
    type_ = MrpType::kConnect;
    net_.control(0, type_, 1);
    for (const std::size_t host : hosts) net_.confirm(host, MrpType::kConnect);
  }
  // ACTIVATE to a host, or its CONFIRM to the leader.
  static bool is_about_activity(const wire::MrpHeader& header) {
    return header.type == MrpType::kActivate ||
           (header.type == MrpType::kConfirm &&
            header.flags == static_cast<std::uint16_t>(MrpType::kActivate));
  }
  // A CONFIRM of the third switch to the second.
  void confirm_at_core(std::size_t host, const std::optional<MrpTree>& tree) {
    auto message = TestNetwork::message_about(MrpType::kConfirm, {net_.member(host)});
    message.header.flags = static_cast<std::uint16_t>(MrpType::kRegister);
    message.header.epoch = 1;
    message.tree = tree;
    net_.inject_at(1, net_.port_between(1, 2), net_.message_bytes(host, message));
  }

  struct Sent {
    std::size_t from, to;
    std::optional<MrpTree> tree;
    bool operator==(const Sent&) const = default;
  };
  // Of hosts with numbers in a row.
  static MrpTree tree(std::uint8_t height, std::size_t lowest, std::uint32_t members,
                      std::uint8_t flags = MrpTree::kSideIsFlat) {
    return {height, flags, TestNetwork::ip(lowest), TestNetwork::ip(lowest + members - 1), members};
  }

  TestNetwork net_;
  MrpType type_ = MrpType::kConfirm;
  std::vector<Sent> sent_;  // between switches, of that type
};

TEST_F(TreeRecords, GoUpWithConfirmAndDownWithActivate) {
  register_all();
  confirm({1, 2, 3, 4, 5});
  EXPECT_THAT(sent_, ElementsAre(Sent{2, 1, tree(1, 3, 3)}, Sent{1, 0, tree(2, 2, 4, 0)}));
  sent_.clear();
  activate();
  EXPECT_THAT(sent_, ElementsAre(Sent{0, 1, tree(1, 0, 2)}, Sent{1, 2, tree(2, 0, 3)}));
  EXPECT_FALSE(net_.view(0).reduction->is_root);
  EXPECT_TRUE(net_.view(1).reduction->is_root);
  EXPECT_FALSE(net_.view(2).reduction->is_root);
}

TEST_F(TreeRecords, GoToHostsOnceTheGroupIsActive) {
  register_all();
  confirm({1, 2, 3, 4, 5});
  connect({1, 2, 3, 4, 5});
  activate();
  for (std::size_t host = 1; host < 6; ++host) net_.confirm(host, MrpType::kActivate);
  for (std::size_t host = 0; host < 6; ++host) {
    int trees = 0;
    for (const auto& bytes : net_.frames(host)) {
      const auto message = wire::MrpMessage::parse(Frame::from_bytes(bytes)->payload());
      ASSERT_TRUE(message);
      EXPECT_EQ(message->tree.has_value(), is_about_activity(message->header));
      if (!message->tree) continue;
      EXPECT_EQ(message->tree->members, 6u) << "of all";
      EXPECT_FALSE(message->tree->has(MrpTree::kGroupIsFlat));
      ++trees;
    }
    EXPECT_GT(trees, 0) << host;
  }
}

TEST_F(TreeRecords, AreNotSentForOtherGroups) {
  net_.reduction.reset();
  register_all();
  confirm({1, 2, 3, 4, 5});
  EXPECT_THAT(sent_, ElementsAre(Sent{2, 1, {}}, Sent{1, 0, {}}));
  activate();
  EXPECT_FALSE(sent_.back().tree);
  EXPECT_TRUE(net_.view(2).active);
}

// The second switch confirms for its own host before it knows the third one's.
TEST_F(TreeRecords, OfPartsOfAGroupGrow) {
  register_all();
  confirm({2});
  net_.advance(2ms);
  confirm({3});
  net_.advance(4ms);
  EXPECT_THAT(sent_, ElementsAre(Sent{1, 0, tree(1, 2, 1, 0)}, Sent{2, 1, tree(1, 3, 3)},
                                 Sent{1, 0, tree(2, 2, 4, 0)}));
  confirm({1, 4, 5});
  activate();
  EXPECT_TRUE(net_.view(0).active) << "it knows the trees of all members";
  EXPECT_TRUE(net_.view(1).reduction->is_root);
}

TEST_F(TreeRecords, ThatWereOvertakenAreIgnored) {
  register_all();
  confirm({1, 2});
  confirm_at_core(5, tree(1, 3, 3));
  confirm_at_core(4, tree(1, 4, 2));
  confirm_at_core(3, tree(1, 4, 2));
  sent_.clear();
  activate();
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_TRUE(net_.view(1).active);
}

TEST_F(TreeRecords, AreNeededBeforeAGroupIsActive) {
  register_all();
  confirm({1, 2});
  for (const std::size_t host : {3, 4, 5}) confirm_at_core(host, {});
  net_.clear();
  activate();
  EXPECT_EQ(net_.inbox(0), Texts({"reject e1 members are missing in the table"}));
  EXPECT_FALSE(net_.view(0).active);
  EXPECT_FALSE(net_.view(1).active);
}

TEST_F(TreeRecords, OfTheLeadersSideAreNeeded) {
  register_all();
  confirm({1, 2, 3, 4, 5});
  net_.clear();
  auto bytes = TestNetwork::control_bytes(0, MrpType::kActivate, 1, {}, 1, 0, 1, nullptr, 4);
  net_.inject_at(1, net_.port_between(1, 0), std::move(bytes));
  EXPECT_EQ(net_.inbox(0), Texts({"reject e1 members are missing in the table"}));
  EXPECT_FALSE(net_.view(1).active);
}

TEST_F(TreeRecords, OfHostsAreDropped) {
  register_all();
  auto message = TestNetwork::message_about(MrpType::kConfirm, {net_.member(4)});
  message.header.flags = static_cast<std::uint16_t>(MrpType::kRegister);
  message.header.epoch = 1;
  message.tree = tree(9, 3, 99);
  net_.send_message(4, message);
  EXPECT_EQ(net_.count(Counter::kDropMrpForged, 2), 1u);
  confirm({1, 2, 3, 4, 5});
  message = TestNetwork::message_about(MrpType::kActivate, {});
  message.header.flags = 5;
  message.header.epoch = 1;
  message.tree = tree(9, 3, 99);
  net_.send_message(0, message);
  EXPECT_EQ(net_.count(Counter::kDropMalformed, 0), 1u);
  EXPECT_FALSE(net_.view(0).active);
}

// The last switch misses ACTIVATE, and is named again.
TEST_F(TreeRecords, AreInRepeatsOfActivate) {
  register_all();
  confirm({1, 2, 3, 4, 5});
  net_.lose = [](std::size_t from, std::size_t to, const std::string&) {
    return from == 1 && to == 2;
  };
  activate();
  ASSERT_FALSE(net_.view(2).active);
  net_.lose = nullptr;
  sent_.clear();
  activate({net_.member(3), net_.member(4), net_.member(5)});
  EXPECT_THAT(sent_, ElementsAre(Sent{0, 1, tree(1, 0, 2)}, Sent{1, 2, tree(2, 0, 3)}));
  EXPECT_TRUE(net_.view(2).active);
  EXPECT_FALSE(net_.view(2).reduction->is_root);
}

// The root is the switch in the middle. It has no host, and knows the leader's side by CONNECT.
class FlatTreeRecords : public testing::Test {
 protected:
  FlatTreeRecords() {
    for (int s = 0; s < 3; ++s) net_.add_switch();
    net_.link(0, 1);
    net_.link(1, 2);
    for (const std::size_t at : {0, 0, 2, 2}) net_.add_host(at);
    net_.start();
    net_.reduction = wire::MrpReduction{wire::MrpReduction::kValues, 4096, 8};
  }
  void confirm(MrpType step) {
    for (std::size_t host = 1; host < 4; ++host) net_.confirm(host, step);
  }
  void register_and_connect() {
    net_.register_group(0, 1, {}, wire::MrpHeader::kLossEnds);
    confirm(MrpType::kRegister);
    net_.control(0, MrpType::kConnect, 1);
  }
  void activate() {
    net_.clear();
    net_.control(0, MrpType::kActivate, 1);
    confirm(MrpType::kActivate);
  }
  // By the host's last message with a TREE.
  bool is_flat_at(std::size_t host) {
    bool is_flat = false;
    for (const auto& bytes : net_.frames(host)) {
      const auto message = wire::MrpMessage::parse(Frame::from_bytes(bytes)->payload());
      if (message && message->tree) is_flat = message->tree->has(MrpTree::kGroupIsFlat);
    }
    return is_flat;
  }

  TestNetwork net_;
};

TEST_F(FlatTreeRecords, BringTheRootsFindingToTheLeadersSwitchAndToAllMembers) {
  register_and_connect();
  confirm(MrpType::kConnect);
  activate();
  ASSERT_TRUE(net_.view(1).reduction->is_root);
  for (std::size_t host = 0; host < 4; ++host) EXPECT_TRUE(is_flat_at(host)) << host;
  for (std::size_t s = 0; s < 3; ++s) EXPECT_TRUE(net_.view(s).reduction->is_flat) << s;
}

// The leader's switch merges its own member's CONFIRM with none of the root.
TEST_F(FlatTreeRecords, AreNotKnownWithoutTheRootsAnswer) {
  register_and_connect();
  net_.confirm(1, MrpType::kConnect);
  activate();
  for (std::size_t host = 0; host < 2; ++host) EXPECT_FALSE(is_flat_at(host)) << host;
}

TEST_F(FlatTreeRecords, OfAHostInConnectAreDropped) {
  register_and_connect();
  auto message = TestNetwork::message_about(MrpType::kConnect, {});
  message.header.flags = 3;
  message.header.epoch = 1;
  message.tree = MrpTree{1, 3, TestNetwork::ip(0), TestNetwork::ip(3), 4};
  net_.send_message(0, message);
  EXPECT_EQ(net_.count(Counter::kDropMalformed, 0), 1u);
}

class TreeRecordsOfMany : public TreeRecords {
 protected:
  static constexpr std::size_t kLast = 3 * wire::MrpMessage::kMaxMembers;
  TreeRecordsOfMany() : TreeRecords(kLast) {}
};

TEST_F(TreeRecordsOfMany, LeaveSpaceForTheMembers) {
  register_all();
  for (std::size_t host = 1; host < 3 + kLast; ++host) net_.confirm(host, MrpType::kRegister);
  std::vector<std::size_t> up;
  for (const Sent& sent : sent_) {
    ASSERT_TRUE(sent.tree);
    if (sent.from == 1) up.push_back(sent.tree->members);
  }
  ASSERT_FALSE(up.empty());
  EXPECT_EQ(up.back(), kLast + 1);
  activate();
  EXPECT_TRUE(net_.view(2).active);
}

TEST_F(TreeRecordsOfMany, GoInNoMoreDatagramsThanTheMembersNeed) {
  register_all();
  for (std::size_t host = 1; host < 3 + kLast; ++host) net_.confirm(host, MrpType::kRegister);
  const auto datagrams_for = [](std::size_t members) {
    constexpr std::size_t kMost = wire::MrpMessage::kMaxWithReduction;
    return static_cast<std::ptrdiff_t>((members + kMost - 1) / kMost);
  };
  EXPECT_EQ(std::ranges::count(sent_, 2u, &Sent::from), datagrams_for(kLast));
  EXPECT_EQ(std::ranges::count(sent_, 1u, &Sent::from), datagrams_for(kLast + 1));
}

TEST_F(TreeRecordsOfMany, FindNoPlaceBesideAFullList) {
  register_all();
  for (std::size_t host = 1; host < 3 + kLast; ++host) net_.confirm(host, MrpType::kRegister);
  std::vector<wire::MrpMember> list;
  for (std::size_t i = 0; i < wire::MrpMessage::kMaxMembers; ++i)
    list.push_back(net_.member(3 + i));
  activate(list);
  EXPECT_EQ(net_.count(Counter::kDropMalformed, 0), 1u);
  EXPECT_FALSE(net_.view(0).active);
  list.pop_back();
  activate(list);
  EXPECT_TRUE(net_.view(2).active);
}

}  // namespace
}  // namespace cepheus::fabric
