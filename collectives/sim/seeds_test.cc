// Jobs under seeds: other seeds every day, and every rule is needed.
// CEPHEUS_FIRST_SEED names another day's first. `broadcast-sim --seed N --trace` shows one seed.
#include <gtest/gtest.h>

#include <string>

#include "collectives/sim/campaign.h"
#include "collectives/sim/test_seeds.h"
#include "fabric-sim/checked/test_situations.h"

namespace cepheus::coll::sim {
namespace {

TEST(SimulatedJob, EndsRightWhateverFailsWhenever) {
  const auto result = expect_seeds_hold(2000, [](std::uint64_t seed) { return run_seed(seed); });
  // Something has happened to them.
  EXPECT_GT(result.sum.multicast, 20 * result.seeds);
  EXPECT_GT(result.sum.tree, result.seeds / 10);
  EXPECT_GT(result.sum.saved, result.seeds);
  EXPECT_GT(result.sum.network, 4 * result.seeds);
  EXPECT_GT(result.sum.messages, result.seeds);
  EXPECT_GT(result.sum.saved_reductions, result.seeds / 10) << "barriers and gathers, as samples";
  EXPECT_GT(result.sum.other_sums, result.seeds / 50);
  EXPECT_GT(result.sum.repaired, result.seeds / 10);
  EXPECT_GT(result.sum.errors, result.seeds / 100);
  EXPECT_GT(result.sum.returns, result.seeds / 20);
  EXPECT_GT(result.sum.aborts, result.seeds / 100);
  EXPECT_GT(result.sum.comparisons, result.seeds / 2);
  EXPECT_GT(result.sum.changes, result.seeds / 40);
  for (std::size_t i = 1; i < result.sum.refused.size(); ++i)
    EXPECT_GT(result.sum.refused[i], 0u) << name(static_cast<Refused>(i));
}

// It has two units. The root's messages to the dead rank failed in the first one.
TEST(SimulatedJob, ARootThatLosesAChildSendsTheOthersAllUnits) {
  const auto outcome = run_broadcasts(20783005494);
  EXPECT_FALSE(outcome.failure.has_value()) << *outcome.failure;
}

// Its leader dies while it announces the group. Other members have broadcast there.
TEST(SimulatedJob, AMemberWithoutTheOutcomeKeepsTheMessagesThatHaveArrived) {
  const auto outcome = run_broadcasts(98003929);
  EXPECT_FALSE(outcome.failure.has_value()) << *outcome.failure;
}

class FailoverRule : public testing::TestWithParam<std::string> {};

// Where the search begins: some rules need a rare job.
std::uint64_t seed_near(const std::string& rule) {
  if (rule == "early_messages_kept") return 1400;
  if (rule == "late_answer") return 1050;
  return 1;
}

TEST_P(FailoverRule, SwitchedOffFailsASeed) {
  expect_a_seed_fails(
      seed_near(GetParam()), 20'000,
      [](std::uint64_t seed) { return run_broadcasts(seed, {GetParam()}); },
      [](std::uint64_t seed) { return run_broadcasts(seed); });
}

INSTANTIATE_TEST_SUITE_P(All, FailoverRule, testing::ValuesIn(kRules),
                         [](const auto& rule) { return rule.param; });

TEST(SimulatedJob, RunsTheSameAgain) {
  const JobOutcome once = run_seed(7), other = run_seed(8), again = run_seed(7);
  EXPECT_EQ(once.events, again.events);
  EXPECT_EQ(once.multicast, again.multicast);
  EXPECT_NE(once.events, other.events);
}

testing::Environment* const must_meet =
    testing::AddGlobalTestEnvironment(new cepheus::sim::SituationsAreMet({"collectives/"}));

}  // namespace
}  // namespace cepheus::coll::sim
