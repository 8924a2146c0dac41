#include "collectives/core/eligibility.h"

#include <gtest/gtest.h>

namespace cepheus::coll {
namespace {

TEST(Eligibility, IsACommunicatorsOfTwoRanksOrMore) {
  Parameters p;
  EXPECT_EQ(eligibility_of({1}, p), Eligibility::kNot);
  EXPECT_EQ(eligibility_of({2}, p), Eligibility::kEligible);
  p.min_members = 4;
  EXPECT_EQ(eligibility_of({1}, p), Eligibility::kNot);
  EXPECT_EQ(eligibility_of({3}, p), Eligibility::kTooFewMembers);
  EXPECT_EQ(eligibility_of({4}, p), Eligibility::kEligible);
}

TEST(Eligibility, EndsWhereMulticastCouldNotServe) {
  Parameters p;
  EXPECT_EQ(eligibility_of({8, true, false}, p), Eligibility::kNot);
  EXPECT_EQ(eligibility_of({8, false, true}, p), Eligibility::kNot);
  p.mode = static_cast<int>(Mode::kOff);
  EXPECT_EQ(eligibility_of({8}, p), Eligibility::kNot);
}

int calls_to_earn(std::uint64_t bytes, const Parameters& p,
                  Collective collective = Collective::kBcast) {
  FirstCalls first;
  int calls = 1;
  while (!first.earn(collective, bytes, p)) ++calls;
  EXPECT_TRUE(first.have_earned());
  return calls;
}

TEST(FirstCalls, EarnAGroupByTheirNumberOrTheirBytes) {
  Parameters p;
  p.set_up_after = 32;
  p.set_up_bytes = 1000;
  EXPECT_EQ(calls_to_earn(1, p), 33);
  EXPECT_EQ(calls_to_earn(100, p), 10);
  EXPECT_EQ(calls_to_earn(1000, p), 1);
}

TEST(FirstCalls, EarnItAtOnceInModeRequireAndOnRequest) {
  Parameters p;
  p.mode = static_cast<int>(Mode::kRequire);
  EXPECT_EQ(calls_to_earn(1, p), 1);
  EXPECT_EQ(calls_to_earn(0, p, Collective::kBarrier), 1);
  p = {};
  p.set_up_after = 0;
  EXPECT_EQ(calls_to_earn(1, p), 1);
  EXPECT_EQ(calls_to_earn(0, p, Collective::kBarrier), 1);
}

// Many programs call one barrier, and its set-up takes longer than the program's own barrier.
TEST(FirstCalls, OfReductionsEarnAGroupLaterThanABroadcastThatEarnsItAtOnce) {
  Parameters p;
  p.set_up_after = Parameters::kBroadcastsAtOnce;
  EXPECT_EQ(calls_to_earn(1, p), 1);
  EXPECT_EQ(calls_to_earn(0, p, Collective::kBarrier), 33);
  EXPECT_EQ(calls_to_earn(8, p, Collective::kAllreduce), 33);
  p.set_up_bytes = 64;
  EXPECT_EQ(calls_to_earn(8, p, Collective::kAllreduce), 8);
}

TEST(FirstCalls, KnowWhichOneWasTheFirst) {
  FirstCalls first;
  EXPECT_FALSE(first.earn(Collective::kBcast, 1, {}));
  EXPECT_TRUE(first.is_first());
  EXPECT_FALSE(first.earn(Collective::kBcast, 1, {}));
  EXPECT_FALSE(first.is_first());
  EXPECT_FALSE(first.have_earned());
}

TEST(LookAgain, ComesMoreAndMoreRarely) {
  LookAgain again;
  const auto calls = [&] {
    std::uint64_t count = 1;
    while (!again.count()) ++count;
    return count;
  };
  EXPECT_EQ(calls(), 64u);
  EXPECT_EQ(calls(), 256u);
  EXPECT_EQ(calls(), 1024u);
  while (calls() < 1u << 20) {
  }
  EXPECT_EQ(calls(), 1u << 20) << "and not beyond";
}

}  // namespace
}  // namespace cepheus::coll
