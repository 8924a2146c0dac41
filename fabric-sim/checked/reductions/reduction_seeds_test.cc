// Seeds of reductions: fabric_sim_seeds_test.cc runs many.
#include <gtest/gtest.h>

#include "fabric-sim/checked/reductions/reduction_scenario.h"
#include "fabric-sim/checked/run_seed.h"

namespace cepheus::sim {
namespace {

TEST(ReductionSeeds, AreTheSameAgain) {
  const PlanOptions options{.reductions = true};
  const Outcome first = run_seed(7, options), second = run_seed(7, options);
  EXPECT_EQ(first.trace_hash, second.trace_hash);
  EXPECT_EQ(first.events, second.events);
  EXPECT_GT(first.reduced, 0u);
}

// Switches do not check themselves here, so the ledger has to find the early results.
TEST(ReductionSeeds, EndTooEarlyIfSwitchesDoNotWaitForAllPaths) {
  PlanOptions options{.reductions = true};
  ASSERT_TRUE(net::set_rule(options.rules, "reduction_all_paths", false));
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ReductionScenario scenario(make_plan(seed, options));
    scenario.network().set_checked(false);
    const Outcome outcome = scenario.run();
    found += outcome.failure && outcome.failure->invariant == Invariant::kCompletion ? 1 : 0;
  }
  EXPECT_GT(found, 10);
}

}  // namespace
}  // namespace cepheus::sim
