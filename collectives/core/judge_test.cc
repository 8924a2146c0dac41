#include "collectives/core/judge.h"

#include <gtest/gtest.h>

#include <random>

namespace cepheus::coll {
namespace {

constexpr Judge::Limits kLimits{0.5, 0.01, 16};

// A job. Its broadcasts of one class take these times, in nanoseconds.
class Job {
 public:
  explicit Job(const Judge::Limits& limits = kLimits)
      : judge(limits), comparison(Judge::first_plan()) {}

  // Broadcasts one, and its time is added to total().
  void broadcast(double multicast, double saved) {
    if (comparison.is_due()) comparison.follow(judge.judge(comparison.plan(), comparison.times()));
    const auto turn = comparison.next();
    const double took = turn.way == Way::kNetwork ? multicast : saved;
    if (turn.is_timed)
      comparison.end(turn, std::chrono::nanoseconds(static_cast<std::int64_t>(took)));
    total_ += took;
    samples_ += turn.is_sample ? 1 : 0;
    ++broadcasts_;
  }
  void broadcasts(int n, double multicast, double saved) {
    for (int i = 0; i < n; ++i) broadcast(multicast, saved);
  }
  Way way() const { return comparison.plan().way; }
  double total() const { return total_; }
  double share_of_samples() const { return samples_ / broadcasts_; }
  double samples() const { return samples_; }

  Judge judge;
  Comparison comparison;

 private:
  double total_ = 0, samples_ = 0, broadcasts_ = 0;
};

TEST(Judge, GivesMulticastUpAfterTwoSamplesIfItIsManyTimesSlower) {
  Job job;
  job.broadcasts(8, 1'500'000, 60'000);
  EXPECT_EQ(job.way(), Way::kOther);
  job.broadcasts(1992, 1'500'000, 60'000);
  EXPECT_LT(job.total(), 1.05 * 2000 * 60'000);
}

TEST(Judge, GivesNothingUpAfterOneSample) {
  Job job;
  job.broadcasts(4, 3'000'000, 20'000);
  for (int i = 0; i < 16; ++i) {
    job.broadcast(20'000, 20'000);
    EXPECT_EQ(job.way(), Way::kNetwork) << i;
  }
}

TEST(Judge, GivesMulticastUpAfterTwoComparisonsIfItIsALittleSlower) {
  Job job;
  job.broadcasts(21 + 2 * 34, 160'000, 100'000);
  EXPECT_EQ(job.way(), Way::kNetwork);
  job.broadcast(160'000, 100'000);
  EXPECT_EQ(job.way(), Way::kOther);
}

// Each hit of a loss takes as long as hundreds of the saved function's broadcasts.
TEST(Judge, PaysForFewLossesBeforeItGivesMulticastUp) {
  double all = 0;
  constexpr int kSeeds = 100, kBroadcasts = 2000;
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937 random(seed);
    std::bernoulli_distribution is_hit(0.18);
    Job job;
    for (int i = 0; i < kBroadcasts; ++i)
      job.broadcast(is_hit(random) ? 4'000'000 : 30'000, 15'000);
    EXPECT_EQ(job.way(), Way::kOther) << seed;
    all += job.total();
  }
  EXPECT_LT(all / kSeeds, 1.5 * kBroadcasts * 15'000);
}

TEST(Judge, BeginsAgainAfterAVoidComparison) {
  Judge judge(kLimits);
  const Plan second = judge.judge(Judge::first_plan(), {100'000, 100'000});
  Plan plan = judge.judge(second, {Times::kVoid, 100'000});
  EXPECT_FALSE(plan.goes_on);
  while (plan.samples == 0) plan = judge.judge(plan, {100'000, Times::kNone});
  EXPECT_EQ(plan.samples, 2u);
  const Plan next = judge.judge(plan, {3'000'000, 100'000});
  EXPECT_EQ(next.way, Way::kNetwork) << "a single sample does not decide";
}

// At a threshold of 0.5: three times as long.
TEST(Judge, GivesMulticastUpAfterOneComparisonIfItIsClearlySlower) {
  for (const std::int64_t multicast : {300'000, 300'001}) {
    Judge judge(kLimits);
    Plan plan = Judge::first_plan();
    while (plan.samples != kLimits.run + 1) plan = judge.judge(plan, {100'000, 100'000});
    plan = judge.judge(plan, {multicast, 100'000});
    EXPECT_EQ(plan.way, multicast > 300'000 ? Way::kOther : Way::kNetwork);
    if (plan.way == Way::kOther) continue;
    EXPECT_EQ(plan.samples, kLimits.run + 1) << "another comparison follows at once";
    EXPECT_EQ(judge.judge(plan, {multicast, 100'000}).way, Way::kOther);
  }
}

TEST(Judge, GivesNothingUpBelowALargeThreshold) {
  Job job({10, 0.01, 16});
  job.broadcasts(2000, 700'000, 100'000);
  EXPECT_EQ(job.way(), Way::kNetwork);
}

TEST(Judge, ComparesNoMoreOftenWhileTheGroupHasFailed) {
  Job job;
  Plan plan = Judge::first_plan();
  double broadcasts = 0, samples = 0;
  while (broadcasts < 20'000) {
    broadcasts += plan.own + plan.samples;
    samples += plan.samples;
    plan = job.judge.judge(plan, {Times::kVoid, plan.samples > 0 ? Times::kVoid : Times::kNone});
  }
  EXPECT_LT(samples / broadcasts, 0.015);
}

TEST(Judge, KeepsMulticastBelowTheThreshold) {
  Job job;
  for (int i = 0; i < 100'000; ++i) {
    job.broadcast(145'000, 100'000);
    ASSERT_EQ(job.way(), Way::kNetwork) << i;
  }
  Job strict({0.2, 0.01, 16});
  strict.broadcasts(100, 145'000, 100'000);
  EXPECT_EQ(strict.way(), Way::kOther);
}

TEST(Judge, CostsLittleWhereMulticastIsFaster) {
  Job job;
  job.broadcasts(2000, 30'000, 75'000);
  EXPECT_EQ(job.way(), Way::kNetwork);
  EXPECT_LT(job.total(), 1.05 * 2000 * 30'000);
}

TEST(Judge, KeepsSamplesToTheirShare) {
  for (const double share : {0.01, 0.001}) {
    Job job({0.5, share, 16});
    job.broadcasts(1'000'000, 30'000, 40'000);
    EXPECT_LT(job.share_of_samples(), share * 1.01 + 30e-6) << share;
    EXPECT_GT(job.share_of_samples(), share / 2) << share;
  }
}

TEST(Judge, PausesLongerIfTheOtherWayTakesLonger) {
  // Broadcasts of the present way from one comparison to the next one.
  const auto pause = [](std::int64_t own, std::int64_t samples) {
    Judge judge(kLimits);
    Plan plan = Judge::first_plan();
    while (plan.samples != kLimits.run + 1) plan = judge.judge(plan, {own, samples});
    plan = judge.judge(plan, {own, samples});
    std::uint64_t broadcasts = plan.own;
    while (plan.samples == 0) {
      plan = judge.judge(plan, {own, Times::kNone});
      broadcasts += plan.own;
    }
    return broadcasts;
  };
  const std::uint64_t as_long = pause(100, 100);
  EXPECT_EQ(pause(100, 90), as_long);
  EXPECT_EQ(pause(Times::kNone, 100), as_long) << "its own time is not known";
  EXPECT_NEAR(static_cast<double>(pause(1, 100)), 100.0 * static_cast<double>(as_long), as_long);
}

TEST(Judge, KeepsSamplesToTheirShareOfTheTime) {
  Job job;
  constexpr int kBroadcasts = 1'000'000;
  job.broadcasts(kBroadcasts, 5'000'000, 50'000);
  EXPECT_EQ(job.way(), Way::kOther);
  EXPECT_LT(job.total(), 1.011 * kBroadcasts * 50'000);
  EXPECT_GT(job.samples(), 40) << "it looks again";
}

TEST(Judge, TakesMulticastBackOnceItIsFaster) {
  Job job;
  job.broadcasts(1000, 600'000, 100'000);
  ASSERT_EQ(job.way(), Way::kOther);
  job.broadcasts(20'000, 120'000, 100'000);
  EXPECT_EQ(job.way(), Way::kOther) << "neither way is taken up for a small difference";
  job.broadcasts(20'000, 90'000, 100'000);
  EXPECT_EQ(job.way(), Way::kNetwork);
}

// The comparison itself is due only after some thousand broadcasts.
TEST(Judge, NoticesWithinAHundredMillisecondsThatMulticastHasBecomeSlow) {
  Job job;
  job.broadcasts(10'000, 2'000'000, 3'000'000);
  ASSERT_EQ(job.way(), Way::kNetwork);
  job.broadcasts(150, 40'000'000, 3'000'000);
  EXPECT_EQ(job.way(), Way::kOther);
}

TEST(Judge, NoticesThatTheSavedFunctionHasBecomeSlow) {
  Job job;
  job.broadcasts(100, 10'000'000, 3'000'000);
  ASSERT_EQ(job.way(), Way::kOther);
  job.broadcasts(300, 10'000'000, 30'000'000);
  EXPECT_EQ(job.way(), Way::kNetwork);
}

// Meanwhile the last times speak against the way: reports show both.
TEST(Judge, KeepsItsWayUntilASecondComparisonSpeaksAgainstIt) {
  Job job;
  job.broadcasts(100, 10'000'000, 3'000'000);
  ASSERT_EQ(job.way(), Way::kOther);
  const auto compare = [&job] {
    for (const auto before = job.judge.comparisons(); job.judge.comparisons() == before;)
      job.broadcast(10'000'000, 30'000'000);
  };
  compare();
  EXPECT_LT(job.judge.network_ns(), job.judge.other_ns());
  EXPECT_EQ(job.way(), Way::kOther);
  compare();
  EXPECT_EQ(job.way(), Way::kNetwork);
}

TEST(Judge, FindsLossesThatMostBroadcastsEscape) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::bernoulli_distribution is_hit(0.18);
    Job job;
    for (int i = 0; i < 200; ++i) job.broadcast(is_hit(random) ? 4'000'000 : 30'000, 75'000);
    EXPECT_EQ(job.way(), Way::kOther);
  }
}

// Now and then the machine has something else to do.
TEST(Judge, IsNotFooledByRareStalls) {
  int given_up = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    std::lognormal_distribution<double> jitter(0, 0.2);
    std::bernoulli_distribution stalls(0.01);
    Job job;
    for (int i = 0; i < 20'000; ++i) {
      const double stall = stalls(random) ? 1'000'000 : 0;
      job.broadcast(30'000 * jitter(random) + stall, 75'000 * jitter(random) + stall);
    }
    given_up += job.way() == Way::kOther ? 1 : 0;
  }
  EXPECT_LE(given_up, 4);
}

TEST(Judge, DecidesNothingWithoutSamples) {
  Judge judge(kLimits);
  Plan plan = Judge::first_plan();
  for (int plans = 0; plans < 10; ++plans) {
    plan = judge.judge(plan, {1000, Times::kNone});
    EXPECT_EQ(plan.way, Way::kNetwork);
  }
  EXPECT_EQ(judge.comparisons(), 0u);
}

TEST(Judge, DecidesNothingByAVoidComparison) {
  Judge judge(kLimits);
  const Plan first = Judge::first_plan();
  const Plan next = judge.judge(first, {Times::kVoid, 1000});
  EXPECT_EQ(next.way, Way::kNetwork);
  EXPECT_GE(next.own, 100u) << "not at once again, and nothing to check before";
  EXPECT_EQ(judge.comparisons(), 0u);
}

}  // namespace
}  // namespace cepheus::coll
