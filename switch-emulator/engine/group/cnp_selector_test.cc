#include "switch-emulator/engine/group/cnp_selector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

// Four paths; time in microseconds.
class CnpPolicyTest : public testing::Test {
 protected:
  void use(net::CnpPolicy policy, Duration window = 500us) {
    policy_ = make_cnp_selector(policy, window);
    for (int i = 0; i < 4; ++i) policy_->on_path_added();
  }
  bool passes(std::int64_t at, PathNo path, PathNo source = kNoPath) {
    return policy_->passes(Instant(std::chrono::microseconds(at)), path, source);
  }
  // Of `count` CNPs of a path at intervals of `gap`, the number that passes.
  int passed(std::int64_t from, std::int64_t gap, int count, PathNo path) {
    int all = 0;
    for (int i = 0; i < count; ++i) all += passes(from + i * gap, path) ? 1 : 0;
    return all;
  }

  std::unique_ptr<fabric::CnpSelector> policy_;
};

TEST_F(CnpPolicyTest, AllPassesThoseOfEveryPath) {
  use(net::CnpPolicy::kAll);
  for (const PathNo path : {1, 2, 3, 1}) EXPECT_TRUE(passes(0, path));
  EXPECT_EQ(policy_->table_bytes(), 0u);
}

TEST_F(CnpPolicyTest, WorstPathPassesThoseOfThePathThatHadMostInTheLastWindow) {
  use(net::CnpPolicy::kWorstPath);
  EXPECT_EQ(policy_->chosen(), kNoPath);
  EXPECT_TRUE(passes(0, 1)) << "nothing is chosen yet";
  EXPECT_EQ(policy_->chosen(), 1);
  EXPECT_EQ(passed(10, 10, 50, 2), 0);
  EXPECT_EQ(policy_->chosen(), 2);
  EXPECT_FALSE(passes(510, 1));
  EXPECT_TRUE(passes(520, 2));
}

TEST_F(CnpPolicyTest, AWindowLastsUntilAPathHasEnough) {
  use(net::CnpPolicy::kWorstPath);
  constexpr int kEnough = WorstPathCnps::kEnough;
  EXPECT_TRUE(passes(0, 1));
  EXPECT_EQ(passed(400, 1, 10, 2), 0);
  EXPECT_TRUE(passes(490, 1)) << "it is not silent";
  EXPECT_EQ(passed(600, 1, kEnough - 11, 2), 0);
  EXPECT_EQ(policy_->chosen(), 1) << "500 us are over, but of so few chance would choose";
  EXPECT_FALSE(passes(700, 2));
  EXPECT_EQ(policy_->chosen(), 2);
}

// CNPs come at random, so equal paths alternate as the worst. The source gets the CNPs of one path,
// and few more.
TEST_F(CnpPolicyTest, OfEquallyCongestedPathsThoseOfOnePass) {
  use(net::CnpPolicy::kWorstPath);
  std::minstd_rand random(1);
  constexpr int kOfEach = 10'000;
  int all = 0;
  for (int i = 0; i < 4 * kOfEach; ++i) all += passes(100 * i, random() % 4) ? 1 : 0;
  EXPECT_NEAR(all, kOfEach, kOfEach / 10);
}

TEST_F(CnpPolicyTest, OfTheMostCongestedPathNearlyAllPass) {
  use(net::CnpPolicy::kWorstPath);
  std::minstd_rand random(1);
  constexpr int kOfEach = 10'000;
  int all = 0;
  for (int i = 0; i < 5 * kOfEach; ++i) {
    all += passes(100 * i, std::min<PathNo>(random() % 5, 3)) ? 1 : 0;  // path 3 has twice as many
  }
  EXPECT_NEAR(all, 2 * kOfEach, 2 * kOfEach / 10);
}

// A fixed window would contain one of each path, or none, if they are rare.
TEST_F(CnpPolicyTest, WorstPathPassesThoseOfOnePathOnFastAndSlowLinks) {
  for (const std::int64_t gap : {50, 5'000, 500'000}) {
    use(net::CnpPolicy::kWorstPath, 20ms);
    std::minstd_rand random(1);
    int all = 0;
    for (int i = 1; i <= 4'000; ++i) all += passes(gap * i, random() % 4) ? 1 : 0;
    EXPECT_NEAR(all, 1'000, 100) << gap;
  }
}

// Otherwise the burst of a sender that begins elsewhere would count for a path that is free again.
TEST_F(CnpPolicyTest, WorstPathForgetsAChoiceThatIsSilentForTwiceItsLongestGap) {
  use(net::CnpPolicy::kWorstPath, 20ms);
  EXPECT_EQ(passed(0, 1'000, 21, 1), 21);
  EXPECT_FALSE(passes(21'900, 2)) << "not that long";
  EXPECT_TRUE(passes(22'100, 3));
  EXPECT_FALSE(passes(22'200, 1));
}

TEST_F(CnpPolicyTest, WorstPathForgetsAChoiceThatIsSilentForHalfAWindow) {
  use(net::CnpPolicy::kWorstPath, 20ms);
  EXPECT_EQ(passed(0, 100, 20, 1), 20);
  EXPECT_EQ(passed(20'000, 1'000, 1, 1), 1) << "a gap of 18 ms, and the end of a window";
  EXPECT_FALSE(passes(29'900, 2)) << "not that long";
  EXPECT_TRUE(passes(30'100, 3));
}

TEST_F(CnpPolicyTest, TheSilenceOfAChoiceOutlastsTheEndOfAWindow) {
  use(net::CnpPolicy::kWorstPath, 20ms);
  passed(0, 1'000, 60, 1);
  // The third window ends at 60.25 ms, and path 1 had more in it. Path 1 is dropped after 61 ms.
  EXPECT_GT(passed(59'500, 50, 60, 2), 20);
}

TEST_F(CnpPolicyTest, TmcfPassesThoseOfThePathThatHadMostInTheLastSlot) {
  use(net::CnpPolicy::kTmcf);
  EXPECT_TRUE(passes(0, 1)) << "nothing is chosen yet";
  EXPECT_EQ(passed(100, 50, 5, 2), 0);
  EXPECT_EQ(passed(500, 50, 3, 2), 3);
  EXPECT_FALSE(passes(700, 1));
  EXPECT_EQ(passed(1000, 50, 2, 2), 2);
}

TEST_F(CnpPolicyTest, TmcfKeepsItsChoiceOverEmptySlotsAndTies) {
  for (const PathNo chosen : {1, 2}) {
    const PathNo other = 3 - chosen;
    use(net::CnpPolicy::kTmcf);
    EXPECT_TRUE(passes(0, chosen));
    EXPECT_TRUE(passes(500 * 9, chosen)) << "eight empty slots";
    EXPECT_FALSE(passes(500 * 9 + 1, other));
    EXPECT_TRUE(passes(500 * 10, chosen)) << "as many: the chosen path stays";
    EXPECT_FALSE(passes(500 * 10 + 1, other));
  }
}

// Otherwise the first slot of a queue that grows elsewhere counts for a path that has long been
// free. A slot is much of the time in which a source should slow down.
TEST_F(CnpPolicyTest, TmcfForgetsItsChoiceAfterATimeWithoutCongestion) {
  use(net::CnpPolicy::kTmcf);
  EXPECT_TRUE(passes(0, 1));
  EXPECT_FALSE(passes(9'999, 2)) << "not that long";
  EXPECT_TRUE(passes(19'999, 3));
  EXPECT_FALSE(passes(20'000, 1));
  use(net::CnpPolicy::kTmcf, 20ms);
  EXPECT_TRUE(passes(0, 1));
  EXPECT_FALSE(passes(19'999, 2));
  EXPECT_TRUE(passes(39'999, 3)) << "a slot";
}

TEST_F(CnpPolicyTest, TheChoiceOutlastsATurn) {
  for (const net::CnpPolicy kind : {net::CnpPolicy::kWorstPath, net::CnpPolicy::kTmcf}) {
    use(kind);
    EXPECT_TRUE(passes(0, 1, 0)) << policy_->to_text();
    EXPECT_FALSE(passes(1, 2, 3)) << policy_->to_text();
    EXPECT_TRUE(passes(2, 1, 3)) << policy_->to_text();
  }
}

TEST_F(CnpPolicyTest, TheWorstOfTheOthersStandsInForAChoiceThatIsTheSources) {
  for (const net::CnpPolicy kind : {net::CnpPolicy::kWorstPath, net::CnpPolicy::kTmcf}) {
    use(kind);
    EXPECT_TRUE(passes(0, 1)) << policy_->to_text();
    EXPECT_TRUE(passes(1, 2, 1)) << policy_->to_text();
    EXPECT_FALSE(passes(2, 0, 1)) << policy_->to_text();
    EXPECT_TRUE(passes(3, 2, 1)) << policy_->to_text();
    EXPECT_FALSE(passes(4, 2)) << policy_->to_text();
    EXPECT_TRUE(passes(5, 1)) << policy_->to_text();
  }
}

// Each turn is too short for a window. Path 2 has three times as many CNPs as path 1.
TEST_F(CnpPolicyTest, ShortTurnsTogetherFindTheWorstPath) {
  for (const net::CnpPolicy kind : {net::CnpPolicy::kWorstPath, net::CnpPolicy::kTmcf}) {
    use(kind);
    int of_first = 0, of_worst = 0;
    for (int turn = 0; turn < 400; ++turn) {
      const PathNo source = turn % 2 == 0 ? 0 : 3;
      const std::int64_t at = 1'000 * turn;
      of_first += passes(at, 1, source) ? 1 : 0;
      for (int i = 1; i <= 3; ++i) of_worst += passes(at + i, 2, source) ? 1 : 0;
    }
    EXPECT_LE(of_first, 10) << policy_->to_text();
    EXPECT_GE(of_worst, 1'170) << policy_->to_text();
  }
}

TEST_F(CnpPolicyTest, APathThatLeavesTakesItsCountsAlong) {
  for (const net::CnpPolicy kind : {net::CnpPolicy::kWorstPath, net::CnpPolicy::kTmcf}) {
    use(kind);
    passed(0, 1, 50, 1);
    policy_->on_path_removed(1, 3);  // 3 has number 1 from now on
    EXPECT_TRUE(passes(100, 2)) << policy_->to_text();
    EXPECT_FALSE(passes(101, 1)) << policy_->to_text();
  }
}

TEST_F(CnpPolicyTest, TheLastPathKeepsWhatItHasUnderItsNewNumber) {
  for (const net::CnpPolicy kind : {net::CnpPolicy::kWorstPath, net::CnpPolicy::kTmcf}) {
    use(kind);
    passed(0, 1, 50, 3);
    policy_->on_path_removed(1, 3);
    EXPECT_FALSE(passes(100, 2)) << policy_->to_text();
    EXPECT_TRUE(passes(101, 1)) << policy_->to_text();
  }
}

TEST_F(CnpPolicyTest, TakesTwoBytesAPath) {
  use(net::CnpPolicy::kWorstPath);
  const std::size_t four = policy_->table_bytes();
  policy_->on_path_added();
  EXPECT_EQ(policy_->table_bytes(), four + 2);
}

// In a switch and over several.

TEST(Cnps, OfOtherPathsThanTheWorstAreCountedAndDropped) {
  auto net = make_star_amid(4, 0);
  for (int i = 0; i < 3; ++i) net->cnp(1);
  net->cnp(2);
  EXPECT_EQ(net->inbox(0), Texts({"cnp", "cnp", "cnp"}));
  EXPECT_EQ(net->count(Counter::kCnpFiltered), 1u);
  EXPECT_EQ(net->count(Counter::kCnpToSource), 3u);
}

TEST(Cnps, OfATurnThatHasEndedCountForTheNext) {
  auto net = make_star_amid(4, 0);
  net->cnp(1);
  for (const std::size_t h : {1, 2, 3}) net->ack(h, 0);
  net->data(3, 0);
  net->clear();
  net->cnp(2);
  EXPECT_EQ(net->inbox(3), Texts());
  net->cnp(1);
  EXPECT_EQ(net->inbox(3), Texts({"cnp"}));
}

TEST(Cnps, EachSwitchPassesThoseOfOneSubtree) {
  auto net = make_pair_of_switches();
  net->data(0, 0);
  net->clear();
  net->cnp(1);
  net->cnp(2);
  net->cnp(3);  // as bad as its neighbour: the far switch passes one of the two
  EXPECT_EQ(net->inbox(0), Texts({"cnp"})) << "the subtree has as many as host 1";
  EXPECT_EQ(net->count(Counter::kCnpFiltered, 1), 1u);
  EXPECT_EQ(net->count(Counter::kCnpFiltered, 0), 1u);
}

// The acknowledgement that carries it is merged, or acknowledges nothing new.
TEST(Cnps, AMarkEchoedInAnAckGoesOnAsANotification) {
  auto net = make_star(
      3, true, [](SwitchConfig& config) { config.rules.cnp_policy = net::CnpPolicy::kAll; });
  net->message(0, 0, 4);
  net->clear();
  net->echo(1, 2);
  EXPECT_EQ(net->inbox(0), Texts({"cnp"}));
  net->ack(2, 1);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
  net->echo(1, 2);
  EXPECT_EQ(net->inbox(0), Texts({"cnp"})) << "stale, but its mark is not";
  net->echo(2, 4);
  EXPECT_EQ(net->inbox(0), Texts({"cnp", "ack 2"}));
  EXPECT_EQ(net->count(Counter::kEchoToSource), 3u);
  EXPECT_EQ(net->sw(0).imbalance(), "");
}

TEST(Cnps, EchoesAreFilteredAsNotificationsAre) {
  auto net = make_pair_of_switches();
  net->message(0, 0, 4);
  net->clear();
  net->echo(2, 0);
  net->echo(2, 1);
  EXPECT_EQ(net->inbox(0), Texts({"cnp", "cnp"})) << "by both switches";
  net->echo(3, 1);
  net->echo(1, 4);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
  EXPECT_EQ(net->count(Counter::kEchoFiltered, 1), 1u);
  EXPECT_EQ(net->count(Counter::kEchoFiltered, 0), 1u);
}

}  // namespace
}  // namespace cepheus::fabric
