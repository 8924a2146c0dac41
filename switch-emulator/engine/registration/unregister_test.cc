// The end of groups: UNREGISTER, tombstones, and repeats over trunks that have not confirmed it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono;
using testing::Contains;
using testing::IsEmpty;
using wire::MrpType;

TEST(Unregister, FreesTheTableAndLeavesATombstone) {
  auto net = make_pair_of_switches();
  net->control(0, MrpType::kUnregister, 1);
  for (const std::size_t h : {1, 2, 3}) EXPECT_EQ(net->inbox(h), Texts({"unregister e1"}));
  EXPECT_EQ(net->sw(0).group_count() + net->sw(1).group_count(), 0u);
  EXPECT_EQ(net->sw(0).tombstone_count(), 1u);
  net->data(0, 0);
  net->ack(1, 0);
  EXPECT_EQ(net->count(Counter::kDropTombstone), 2u) << "dropped, never answered";
  net->register_group(0, 1);  // a late duplicate
  EXPECT_EQ(net->count(Counter::kDropMrpStale), 1u);
  net->register_group(0, 2);
  EXPECT_EQ(net->inbox(0), Texts({"reject e2 group id in use"}));
  net->advance(seconds(5));
  EXPECT_EQ(net->sw(0).tombstone_count() + net->sw(1).tombstone_count(), 0u);
  net->register_group(0, 2);
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->sw(1).group_count(), 1u);
}

TEST(Unregister, IsPassedOnAgainWhenRepeated) {
  auto net = make_pair_of_switches();
  net->lose = [](std::size_t, std::size_t, const std::string&) { return true; };
  net->control(0, MrpType::kUnregister, 1);
  EXPECT_EQ(net->sw(1).group_count(), 1u);
  net->lose = nullptr;
  net->control(0, MrpType::kUnregister, 1);
  EXPECT_EQ(net->sw(1).group_count(), 0u);
}

// The leader's first UNREGISTER was lost on its own link, and its repeat names no evicted member.
TEST(Unregister, ThatNamesMembersEndsTheGroupBehindEvictedOnes) {
  auto net = make_pair_of_switches();
  net->control(0, MrpType::kEvict, 1, {net->member(2), net->member(3)});
  net->clear();
  net->control(0, MrpType::kUnregister, 1, {net->member(1)});
  EXPECT_EQ(net->inbox(1), Texts({"unregister e1"}));
  EXPECT_EQ(net->sw(0).group_count(), 0u);
  EXPECT_EQ(net->sw(1).group_count(), 0u);
}

// A hostile leader names itself alone.
TEST(Unregister, ThatNamesSomeMembersEndsTheGroupForAll) {
  auto net = make_pair_of_switches();
  net->control(0, MrpType::kUnregister, 1, {net->member(0)});
  for (const std::size_t h : {1, 2, 3}) EXPECT_EQ(net->inbox(h), Texts({"unregister e1"}));
  EXPECT_EQ(net->sw(0).group_count() + net->sw(1).group_count(), 0u);
}

TEST(Unregister, OfManyGroupsKeepsABoundedNumberOfTombstones) {
  auto net = make_star(2, false, [](SwitchConfig& c) { c.max_tombstones = 1; });
  net->set_up_group();
  net->control(0, MrpType::kUnregister, 1);
  EXPECT_EQ(net->sw(0).tombstone_count(), 1u);
  EXPECT_NE(net->sw(0).deadline(), wire::kNever);
  net->advance(seconds(5));
  EXPECT_EQ(net->sw(0).deadline(), wire::kNever);
}

constexpr auto kAll = [](std::size_t, std::size_t, const std::string&) { return true; };

// Host 1 is the only member that is left, so the leader repeats nothing once it has confirmed.
TEST(Unregister, IsRepeatedForSwitchesOfEvictedMembers) {
  auto net = make_pair_of_switches();
  net->control(0, MrpType::kEvict, 1, {net->member(2), net->member(3)});
  net->lose = kAll;
  net->control(0, MrpType::kUnregister, 1);
  net->confirm(1, MrpType::kUnregister);
  net->advance(net->config(0).rest / 2);
  EXPECT_EQ(net->sw(1).group_count(), 1u) << "the first repeats were lost, too";
  net->lose = nullptr;
  net->advance(net->config(0).rest / 4);
  EXPECT_EQ(net->sw(1).group_count(), 0u);
}

TEST(Unregister, IsNotRepeatedOnceEachTrunkHasConfirmed) {
  auto net = make_pair_of_switches();
  net->control(0, MrpType::kUnregister, 1);
  net->confirm(3, MrpType::kUnregister);
  net->advance(1s);
  Texts over;
  net->lose = [&](std::size_t, std::size_t, const std::string& t) {
    over.push_back(t);
    return false;
  };
  net->advance(net->config(0).rest);
  EXPECT_EQ(over, Texts());
}

TEST(Unregister, IsRepeatedThreeTimesToAnEmptySwitch) {
  auto net = make_pair_of_switches();
  net->control(0, MrpType::kEvict, 1, {net->member(2), net->member(3)});
  Texts over;
  net->lose = [&](std::size_t, std::size_t, const std::string& t) {
    over.push_back(t);
    return false;
  };
  net->control(0, MrpType::kUnregister, 1);
  net->advance(2 * net->config(0).rest);
  EXPECT_EQ(over, Texts(4, "unregister e1"));
}

// Host 0 leads at the first of four switches; host 1 is at the second one, behind which the third and
// the fourth have a member each.
class UnregisterOverTrunks : public testing::Test {
 protected:
  UnregisterOverTrunks() {
    for (int s = 0; s < 4; ++s) net_.add_switch();
    for (const auto& [a, b] : {std::pair(0, 1), {1, 2}, {1, 3}}) net_.link(a, b);
    for (int s = 0; s < 4; ++s) net_.add_host(s);
    net_.start();
  }
  bool has_group(std::size_t s) { return net_.sw(s).group_count() > 0; }

  TestNetwork net_;
};

// The evicted member confirms nothing, and all others confirm twice: as many CONFIRMs as members.
TEST_F(UnregisterOverTrunks, IsRepeatedAfterAnEvictionAndTwoLosses) {
  net_.set_up_group();
  net_.control(0, MrpType::kEvict, 1, {net_.member(2)});
  net_.lose = [](std::size_t, std::size_t to, const std::string&) { return to == 2; };
  net_.control(0, MrpType::kUnregister, 1);
  net_.lose = nullptr;
  for (const std::size_t host : {1, 3}) net_.confirm(host, MrpType::kUnregister);
  net_.advance(10ms);
  net_.clear();  // the leader does not get their CONFIRMs
  net_.control(0, MrpType::kUnregister, 1, {net_.member(1), net_.member(3)});
  net_.advance(10ms);
  ASSERT_EQ(net_.inbox(0), Texts({"confirm e1 10.0.0.2 10.0.0.4"})) << "it repeats nothing more";
  ASSERT_TRUE(has_group(2));
  net_.advance(net_.config(0).rest);
  EXPECT_FALSE(has_group(2));
}

TEST_F(UnregisterOverTrunks, OfMoreGroupsThanTombstonesIsRepeatedAtOnce) {
  for (std::size_t s = 0; s < 4; ++s) {
    net_.config(s).max_tombstones = 1;
    net_.restart(s);
  }
  net_.set_up_group();
  net_.lose = kAll;
  net_.control(0, MrpType::kUnregister, 1);
  net_.lose = nullptr;
  const wire::McstId other(198, 18, 0, 8);
  const std::vector<wire::MrpMember> list = {net_.member(0), net_.member(1)};
  const auto send = [&](MrpType type) {
    net_.inject_bytes(0,
                      TestNetwork::control_bytes(0, type, 1, list, 1, 0, 1, nullptr, 0, {}, other));
  };
  send(MrpType::kRegister);
  send(MrpType::kUnregister);
  for (const std::size_t s : {1, 2, 3}) EXPECT_FALSE(has_group(s)) << s;
}

// The leader's switch has missed all UNREGISTERs of the first epoch.
TEST_F(UnregisterOverTrunks, GoesToSwitchesThatANewerEpochLeavesOut) {
  net_.register_group(0, 1, {0, 1, 2});
  net_.control(0, MrpType::kActivate, 1);
  Texts over;
  net_.lose = [&](std::size_t from, std::size_t to, const std::string& t) {
    if (t.starts_with("unregister")) {
      over.push_back(std::to_string(from) + " to " + std::to_string(to));
    }
    return false;
  };
  net_.register_group(0, 2, {0, 1, 3});
  EXPECT_TRUE(has_group(2)) << "the second switch alone knows of the newer epoch";
  net_.clear();
  net_.advance(net_.config(0).rest / 4);
  EXPECT_EQ(over, Texts({"1 to 2"}));
  EXPECT_FALSE(has_group(2));
  EXPECT_THAT(net_.inbox(2), Contains("unregister e1"));
  EXPECT_THAT(net_.inbox(3), IsEmpty());
  for (const std::size_t s : {0, 1, 3}) EXPECT_EQ(net_.view(s).epoch, 2u) << s;
}

// The newer tree has the same trunk. So the first switch repeats only its UNREGISTER.
TEST_F(UnregisterOverTrunks, OfANewerEpochEndsAnOlderOne) {
  net_.set_up_group();
  net_.lose = [](std::size_t, std::size_t to, const std::string&) { return to == 1; };
  net_.register_group(0, 2, {0, 1, 2, 3});
  net_.control(0, MrpType::kUnregister, 2);
  net_.lose = nullptr;
  net_.clear();
  ASSERT_FALSE(has_group(0));
  for (const std::size_t s : {1, 2, 3}) ASSERT_EQ(net_.view(s).epoch, 1u) << s;
  net_.advance(net_.config(0).rest / 4);
  for (const std::size_t s : {1, 2, 3}) EXPECT_FALSE(has_group(s)) << s;
  for (const std::size_t host : {1, 2, 3}) EXPECT_THAT(net_.inbox(host), Contains("unregister e1"));
}

TEST_F(UnregisterOverTrunks, OfAnOlderEpochEndsNoNewerOne) {
  net_.set_up_group();
  net_.register_group(0, 2, {0, 1, 2, 3});
  net_.control(0, MrpType::kUnregister, 1);
  for (const std::size_t s : {0, 1, 2, 3}) EXPECT_EQ(net_.view(s).epoch, 2u) << s;
}

}  // namespace
}  // namespace cepheus::fabric
