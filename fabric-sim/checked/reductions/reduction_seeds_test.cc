// Seeds of reductions: fabric_sim_seeds_test.cc runs many.
#include <gtest/gtest.h>

#include "fabric-sim/checked/reductions/reduction_scenario.h"

namespace cepheus::sim {
namespace {

TEST(ReductionSeeds, AreTheSameAgain) {
  const Outcome first = run_reduction_seed(7), second = run_reduction_seed(7);
  EXPECT_EQ(first.trace_hash, second.trace_hash);
  EXPECT_EQ(first.events, second.events);
  EXPECT_GT(first.reduced, 0u);
}

}  // namespace
}  // namespace cepheus::sim
