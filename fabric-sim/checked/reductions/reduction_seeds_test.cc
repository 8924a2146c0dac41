// The same seeds as of other groups, with reductions.
#include <gtest/gtest.h>

#include "fabric-sim/checked/first_seed.h"
#include "fabric-sim/checked/reductions/reduction_scenario.h"

namespace cepheus::sim {
namespace {

void expect_all_hold(const PlanOptions& options, std::uint64_t seeds) {
  const std::uint64_t first = first_seed();
  std::uint64_t units = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Outcome outcome = run_reduction_seed(seed, options);
    units += outcome.reduced;
    ASSERT_FALSE(outcome.failure) << "seed " << seed << ": " << outcome.failure->text;
  }
  EXPECT_GT(units, seeds);
}

TEST(ReductionSeeds, GiveEveryMemberEveryResult) { expect_all_hold({}, 60); }

TEST(ReductionSeeds, HoldOnFabricsWithEqualCostPaths) {
  PlanOptions options;
  options.fabrics = true;
  expect_all_hold(options, 20);
}

TEST(ReductionSeeds, AreTheSameAgain) {
  const Outcome first = run_reduction_seed(7), second = run_reduction_seed(7);
  EXPECT_EQ(first.trace_hash, second.trace_hash);
  EXPECT_EQ(first.events, second.events);
}

}  // namespace
}  // namespace cepheus::sim
