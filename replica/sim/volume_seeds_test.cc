// Volumes under crashes, cut links and rival writers: other seeds every day, and a check that every
// rule is needed. CEPHEUS_FIRST_SEED names another day's first seed.

#include <gmock/gmock.h>

#include <cstdio>

#include "fabric-sim/checked/first_seed.h"
#include "fabric-sim/checked/seeds.h"
#include "fabric-sim/checked/situations.h"
#include "replica/sim/world.h"

namespace cepheus::replica::sim {
namespace {

TEST(VolumeSeeds, HoldEveryInvariant) {
  const std::uint64_t first = cepheus::sim::first_seed();
  std::printf("seeds from %llu\n", static_cast<unsigned long long>(first));
  const auto result = cepheus::sim::run_seeds(
      first, 1500, 1, 10, [](std::uint64_t seed) { return run_seed(seed); },
      [](const auto& failure) {
        ADD_FAILURE() << "seed " << failure.seed << ": " << failure.failure
                      << "\n  replay: cepheus-volume-sim --trace --seed " << failure.seed;
      });
  // Requests were acknowledged.
  EXPECT_GT(result.sum.acknowledged, 150u * result.seeds / 2);
  EXPECT_GT(result.sum.takeovers, 2 * result.seeds);
  EXPECT_GT(result.sum.evicted, 4 * result.seeds);
  EXPECT_GT(result.sum.disk_losses, result.seeds / 20);
  cepheus::sim::print_seldom_situations({"replica/engine/"});
  EXPECT_THAT(cepheus::sim::unmet_situations({"replica/engine/"}), testing::IsEmpty());
}

// Seeds that once failed, for errors that are fixed.
TEST(VolumeSeeds, HoldForSeedsThatOnceFailed) {
  for (const std::uint64_t seed :
       {109u, 1404u, 3672u, 5658u, 13940u, 15336u, 16440u, 18587u, 62712u, 76401u, 166583u, 190160u,
        525105u, 1919u, 186564u, 982464u, 865827u}) {
    const auto outcome = run_seed(seed);
    EXPECT_FALSE(outcome.failure) << "seed " << seed << ": " << *outcome.failure;
  }
}

class VolumeRule : public testing::TestWithParam<Rule> {};

TEST_P(VolumeRule, SwitchedOffFailsASeed) {
  Rules rules;
  rules.*GetParam().member = false;
  const auto found = cepheus::sim::first_failure(
      1, 12000, [&](std::uint64_t seed) { return run_seed(seed, rules); },
      [](std::uint64_t seed) { return run_seed(seed); });
  EXPECT_TRUE(found) << "no seed fails without " << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(All, VolumeRule, testing::ValuesIn(kRules),
                         [](const auto& rule) { return rule.param.name; });

TEST(VolumeSeeds, RunTheSameAgain) {
  const auto once = run_seed(7), again = run_seed(7);
  EXPECT_EQ(once.steps, again.steps);
  EXPECT_EQ(once.acknowledged, again.acknowledged);
  EXPECT_NE(run_seed(8).steps, once.steps);
}

}  // namespace
}  // namespace cepheus::replica::sim
