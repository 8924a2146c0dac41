// The judge under a model of a job: ranks that come late, and networks that are fast, slow or lossy.
#include "collectives/core/reduction_judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace cepheus::coll {
namespace {

constexpr Judge::Limits kLimits{0.5, 0.01, 16};
constexpr double kMicrosecond = 1e3, kMillisecond = 1e6;  // in nanoseconds

// Which ranks come late to which calls, and by how much.
struct Lateness {
  int ranks = 4;
  double late = 0;         // ns
  int period = 0;          // calls; 0: at random
  int burst = 1;           // number of late calls at the begin of a period
  double probability = 0;  // of a call, without a period
  bool is_one_rank = false;
};

std::string to_text(const Lateness& it) {
  return std::to_string(it.ranks) + " ranks, " + std::to_string(it.late / kMillisecond) +
         " ms late, period " + std::to_string(it.period) + ", burst " + std::to_string(it.burst) +
         ", probability " + std::to_string(it.probability) +
         (it.is_one_rank ? ", one rank" : ", any rank");
}

// The times of both ways. The network loses a result of the last rank now and then.
struct Ways {
  double network, others;  // ns
  double loss = 0;         // the probability
  double loss_time = 10 * kMillisecond;
};

// A job that makes calls of one class. All its ranks wait for the last one in each call.
class Job {
 public:
  Job(const Lateness& lateness, unsigned seed)
      : lateness_(lateness),
        random_(seed),
        phase_(static_cast<int>(random_() % 1000)),
        ranks_(static_cast<std::size_t>(lateness.ranks),
               Comparison(ReductionJudge::first_plan(kLimits), true)),
        behind_(ranks_.size()) {}

  void call(const Ways& ways) {
    if (ranks_[0].is_due()) agree();
    if (is_late())
      behind_[lateness_.is_one_rank ? 1 : random_() % behind_.size()] += lateness_.late;
    const double last = *std::ranges::max_element(behind_);
    const bool in_network = serve(ways, last);
    samples_ += in_network == (way() == Way::kNetwork) ? 0 : 1;
    ++calls_;
  }
  void calls(int n, const Ways& ways) {
    for (int i = 0; i < n; ++i) call(ways);
  }
  // False: not within `most` calls.
  bool reaches(Way goal, int most, const Ways& ways) {
    for (int i = 0; i < most && way() != goal; ++i) call(ways);
    return way() == goal;
  }
  Way way() const { return ranks_[0].plan().way; }
  int changes() const { return changes_; }
  double share_of_samples() const { return samples_ / calls_; }
  double calls() const { return calls_; }

 private:
  void agree() {
    Times times;
    for (const Comparison& each : ranks_) times.take_faster(each.times());
    const Plan plan = judge_.judge(ranks_[0].plan(), times);
    changes_ += plan.way == way() ? 0 : 1;
    for (Comparison& each : ranks_) each.follow(plan);
  }
  bool is_late() {
    const int at = phase_++;
    if (lateness_.period > 0) return at % lateness_.period < lateness_.burst;
    return std::bernoulli_distribution(lateness_.probability)(random_);
  }
  // True: in the network.
  bool serve(const Ways& ways, double last) {
    std::vector<double>& behind = behind_;
    bool in_network = false;
    double took = 0, lost = 0;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto turn = ranks_[rank].next();
      if (rank == 0) {
        in_network = turn.way == Way::kNetwork;
        took = (in_network ? ways.network : ways.others) * jitter_(random_);
        lost = in_network && std::bernoulli_distribution(ways.loss)(random_) ? ways.loss_time : 0;
      }
      const double own_loss = rank + 1 == ranks_.size() ? lost : 0;
      if (turn.is_timed)
        ranks_[rank].end(turn, std::chrono::nanoseconds(static_cast<std::int64_t>(
                                   last - behind[rank] + took + own_loss)));
      behind[rank] = own_loss;
    }
    return in_network;
  }

  const Lateness lateness_;
  std::mt19937 random_;
  std::uniform_real_distribution<double> jitter_{0.85, 1.15};
  int phase_;
  ReductionJudge judge_{kLimits};
  std::vector<Comparison> ranks_;
  std::vector<double> behind_;  // ns: a rank's begin of the next call
  int changes_ = 0;
  double samples_ = 0, calls_ = 0;
};

constexpr Ways kFast{60 * kMicrosecond, 120 * kMicrosecond},
    kSlow{180 * kMicrosecond, 60 * kMicrosecond},
    kLossy{60 * kMicrosecond, 60 * kMicrosecond, 0.05};

std::vector<Lateness> with_all(const std::vector<Lateness>& patterns) {
  std::vector<Lateness> all;
  for (Lateness each : patterns) {
    for (const int ranks : {3, 16}) {
      for (const double late : {1 * kMillisecond, 10 * kMillisecond}) {
        for (const bool is_one_rank : {false, true}) {
          each.ranks = ranks;
          each.late = late;
          each.is_one_rank = is_one_rank;
          all.push_back(each);
        }
      }
    }
  }
  return all;
}
Lateness every(int period, int burst = 1) { return {.period = period, .burst = burst}; }
Lateness at_random(double probability) { return {.probability = probability}; }

// A given-up network is no such for good.
TEST(ReductionJudge, KeepsAFasterNetworkWhicheverRanksAreLate) {
  constexpr int kSeeds = 2, kCalls = 20'000;
  int runs = 0, given_up = 0;
  for (const Lateness& lateness :
       with_all({every(2), every(3), every(9), every(17), every(34), every(63), every(20, 10),
                 at_random(1.0 / 3), at_random(1.0 / 17), at_random(1.0 / 63)})) {
    for (unsigned seed = 1; seed <= kSeeds; ++seed, ++runs) {
      SCOPED_TRACE(to_text(lateness) + ", seed " + std::to_string(seed));
      Job job(lateness, seed);
      job.calls(kCalls, kFast);
      EXPECT_LT(job.share_of_samples(), 0.03);
      if (job.changes() == 0) continue;
      ++given_up;
      EXPECT_TRUE(job.reaches(Way::kNetwork, 1'000'000, kFast));
    }
  }
  EXPECT_LT(given_up * 100, runs);
}

// Waits that are much longer than the difference hide it: they are rare here, or always one rank's.
TEST(ReductionJudge, GivesUpANetworkThatTakesThreeTimesAsLong) {
  for (const Lateness& lateness : with_all({every(17), every(63), at_random(1.0 / 17)})) {
    for (unsigned seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(to_text(lateness) + ", seed " + std::to_string(seed));
      Job job(lateness, seed);
      EXPECT_TRUE(job.reaches(Way::kOther, 100'000, kSlow));
      EXPECT_LT(job.share_of_samples(), 0.5);
    }
  }
  for (const int period : {2, 3, 5}) {
    Job job({.ranks = 8, .late = 10 * kMillisecond, .period = period, .is_one_rank = true}, 1);
    EXPECT_TRUE(job.reaches(Way::kOther, 100, kSlow)) << period;
  }
}

// Half of the jobs need 1,000 calls.
TEST(ReductionJudge, GivesUpANetworkThatLosesResultsOfOneRank) {
  double all = 0;
  int jobs = 0;
  for (const Lateness& lateness : {Lateness{}, every(17), every(63), at_random(1.0 / 17)}) {
    for (unsigned seed = 1; seed <= 25; ++seed, ++jobs) {
      SCOPED_TRACE(to_text(lateness) + ", seed " + std::to_string(seed));
      Lateness rare = lateness;
      rare.late = 1 * kMillisecond;
      Job job(rare, seed);
      EXPECT_TRUE(job.reaches(Way::kOther, 200'000, kLossy));
      all += job.calls();
    }
  }
  EXPECT_LT(all / jobs, 10'000);
}

// It looks again, and a few samples may lose nothing.
TEST(ReductionJudge, SeldomReturnsToANetworkThatLosesResults) {
  int changes = 0;
  constexpr int kJobs = 8;
  for (unsigned seed = 1; seed <= kJobs; ++seed) {
    Job job({}, seed);
    ASSERT_TRUE(job.reaches(Way::kOther, 200'000, kLossy)) << seed;
    job.calls(100'000, kLossy);
    changes += job.changes() - 1;
  }
  EXPECT_LE(changes, kJobs / 4);
}

TEST(ReductionJudge, ReturnsToTheNetworkOnceItIsFast) {
  for (const Lateness& lateness : {Lateness{}, every(3), at_random(1.0 / 17)}) {
    Lateness late = lateness;
    late.late = 1 * kMillisecond;
    for (unsigned seed = 1; seed <= 10; ++seed) {
      Job job(late, seed);
      if (!job.reaches(Way::kOther, 100'000, kSlow)) continue;
      EXPECT_TRUE(job.reaches(Way::kNetwork, 100'000, kFast)) << to_text(late) << ", " << seed;
    }
  }
}

TEST(ReductionJudge, KeepsSamplesToTheirShare) {
  for (const Ways& ways : {kFast, kSlow}) {
    Job job({}, 1);
    job.calls(200'000, ways);
    EXPECT_LT(job.share_of_samples(), 0.0105);
    EXPECT_GT(job.share_of_samples(), 0.002) << "it looks again";
  }
}

TEST(ReductionJudge, KeepsTheNetworkBelowTheThreshold) {
  Job job({}, 1);
  job.calls(200'000, {145 * kMicrosecond, 100 * kMicrosecond});
  EXPECT_EQ(job.changes(), 0);
}

// --- Single reports.

constexpr Times kAgainst{300'000, 100'000}, kEqual{100'000, 100'000};

// Timed calls of each way until the judge gives the network up.
std::uint32_t until_given_up(ReductionJudge& judge, Plan plan, const Times& times) {
  std::uint32_t samples = 0;
  for (int plans = 0; plans < 100 && plan.way == Way::kNetwork; ++plans) {
    if (plan.samples > 0) samples += plan.samples - 1;
    plan = judge.judge(plan, times);
  }
  EXPECT_EQ(plan.way, Way::kOther);
  return samples;
}

TEST(ReductionJudge, NeedsTwoComparisonsOfEightCallsEach) {
  ReductionJudge judge(kLimits);
  EXPECT_EQ(until_given_up(judge, ReductionJudge::first_plan(kLimits), kAgainst), 16u);
  EXPECT_EQ(judge.comparisons(), 2u);
}

TEST(ReductionJudge, TimesAsManyOwnCallsAsSamplesAtIrregularTimes) {
  ReductionJudge judge(kLimits);
  Plan plan = ReductionJudge::first_plan(kLimits);
  std::vector<std::uint32_t> own;
  while (plan.way == Way::kNetwork) {
    Comparison comparison(plan, true);
    std::uint32_t timed[2] = {};
    while (!comparison.is_due()) {
      const auto turn = comparison.next();
      timed[turn.is_sample] += turn.is_timed;
    }
    EXPECT_EQ(timed[0], timed[1]);
    own.push_back(plan.own);
    plan = judge.judge(plan, kAgainst);
  }
  std::ranges::sort(own);
  EXPECT_GT(std::ranges::unique(own).begin() - own.begin(), 2);
}

TEST(ReductionJudge, DecidesNothingWithinTwiceTheStandardError) {
  // After two plans of this squared error, the difference of 300 - 1.5 * 100 us has one of 75 us.
  constexpr double kSquared = 2 * 75'000.0 * 75'000.0;
  for (const double part : {0.99, 1.01}) {
    ReductionJudge judge(kLimits);
    Plan plan = ReductionJudge::first_plan(kLimits);
    const Times times{300'000, 100'000, part * kSquared, 0};
    for (int plans = 0; plans < 2; ++plans) plan = judge.judge(plan, times);
    EXPECT_EQ(judge.comparisons(), part < 1 ? 1u : 0u) << part;
    EXPECT_EQ(plan.way, Way::kNetwork);
  }
}

TEST(ReductionJudge, EndsAnUndecidedComparison) {
  ReductionJudge judge(kLimits);
  Plan plan = ReductionJudge::first_plan(kLimits);
  std::uint32_t samples = 0;
  for (; plan.samples > 0 && plan.own < 100; plan = judge.judge(plan, {300'000, 100'000, 1e13, 0}))
    samples += plan.samples - 1;
  EXPECT_EQ(samples, 16 * kLimits.run);
  EXPECT_EQ(judge.comparisons(), 1u);
}

TEST(ReductionJudge, DecidesNothingByAVoidComparison) {
  for (const Times& times : {Times{Times::kVoid, 1000}, Times{1000, Times::kVoid},
                             Times{1000, Times::kNone}, Times{Times::kNone, 1000}}) {
    ReductionJudge judge(kLimits);
    Plan plan = judge.judge(ReductionJudge::first_plan(kLimits), kAgainst);
    plan = judge.judge(plan, times);
    EXPECT_EQ(plan.way, Way::kNetwork);
    EXPECT_EQ(plan.samples, 0u) << "not at once again";
    EXPECT_EQ(judge.comparisons(), 0u);
    while (plan.samples == 0) plan = judge.judge(plan, {100'000, Times::kNone});
    EXPECT_EQ(until_given_up(judge, plan, kAgainst), 16u) << "from the start";
  }
}

// Both ways took the same time, and then a report says that the network has become slow.
Plan after_a_slow_report(ReductionJudge& judge) {
  Plan plan = ReductionJudge::first_plan(kLimits);
  while (plan.samples > 0) plan = judge.judge(plan, kEqual);
  return judge.judge(plan, {300'000, Times::kNone});
}

// The comparison itself is due only after some thousand calls.
TEST(ReductionJudge, ComparesAtOnceIfTheNetworkHasBecomeSlow) {
  ReductionJudge judge(kLimits);
  Plan plan = after_a_slow_report(judge);
  EXPECT_GT(plan.samples, 0u);
  EXPECT_LT(plan.own, 20u);
  EXPECT_EQ(until_given_up(judge, plan, kAgainst), 16u);
}

TEST(ReductionJudge, IgnoresReportsForAWhileAfterAWrongOne) {
  ReductionJudge judge(kLimits);
  Plan plan = after_a_slow_report(judge);
  ASSERT_GT(plan.samples, 0u);
  std::uint32_t samples = 0;
  for (; plan.samples > 0; plan = judge.judge(plan, kEqual)) samples += plan.samples - 1;
  EXPECT_EQ(samples, 4 * kLimits.run) << "a doubt is dispelled by more calls";
  std::uint32_t calls = 0;
  for (; plan.samples == 0; plan = judge.judge(plan, {300'000, Times::kNone})) calls += plan.own;
  EXPECT_GT(calls, samples / kLimits.share / 2);
}

}  // namespace
}  // namespace cepheus::coll
