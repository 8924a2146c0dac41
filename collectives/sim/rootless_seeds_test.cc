// Jobs of reductions under seeds: other seeds every day, and every rule is needed.
// CEPHEUS_FIRST_SEED names another day's first. `rootless-sim --seed N --trace` shows one seed.
#include <gtest/gtest.h>

#include <string>

#include "collectives/sim/rootless_job.h"
#include "collectives/sim/test_seeds.h"

namespace cepheus::coll::sim {
namespace {

TEST(RootlessJob, EndsRightWhateverFailsWhenever) {
  const auto result =
      expect_seeds_hold(800, [](std::uint64_t seed) { return run_rootless_seed(seed); });
  // Something has happened to them.
  EXPECT_GT(result.sum.by_group, 20 * result.seeds);
  EXPECT_GT(result.sum.by_host, 5 * result.seeds);
  EXPECT_GT(result.sum.errors, result.seeds / 2);
  EXPECT_GT(result.sum.copied, result.seeds / 4);
  EXPECT_GT(result.sum.failovers, result.seeds / 4);
  EXPECT_GT(result.sum.lost, result.seeds / 10);
  EXPECT_GT(result.sum.returns, result.seeds / 10);
}

class RootlessRule : public testing::TestWithParam<std::string> {};

TEST_P(RootlessRule, SwitchedOffFailsASeed) {
  expect_a_seed_fails(
      1, 2000, [](std::uint64_t seed) { return run_rootless_seed(seed, {GetParam()}); },
      [](std::uint64_t seed) { return run_rootless_seed(seed); });
}

INSTANTIATE_TEST_SUITE_P(All, RootlessRule, testing::ValuesIn(kRootlessRules),
                         [](const auto& rule) { return rule.param; });

TEST(RootlessJob, RunsTheSameAgain) {
  const RootlessOutcome once = run_rootless_seed(7), other = run_rootless_seed(8),
                        again = run_rootless_seed(7);
  EXPECT_EQ(once.events, again.events);
  EXPECT_EQ(once.by_group, again.by_group);
  EXPECT_NE(once.events, other.events);
}

}  // namespace
}  // namespace cepheus::coll::sim
