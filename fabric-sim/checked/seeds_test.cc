#include "fabric-sim/checked/seeds.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "fabric-sim/checked/first_seed.h"
#include "fabric-sim/checked/run_seed.h"

namespace cepheus::sim {
namespace {

auto run_without_a_rule(unsigned jobs, std::size_t most_failures, std::size_t& reported) {
  PlanOptions options;
  net::set_rule(options.rules, "nak_ordering", false);
  return run_seeds(
      1, 60, jobs, most_failures, [&](std::uint64_t seed) { return run_seed(seed, options); },
      [&](const FailedSeed<Outcome>&) { ++reported; });
}

TEST(RunSeeds, FindsTheSameOnOneThreadAndOnThree) {
  std::size_t reported_by_one = 0, reported_by_three = 0;
  const auto one = run_without_a_rule(1, 100, reported_by_one);
  const auto three = run_without_a_rule(3, 100, reported_by_three);
  EXPECT_EQ(one.seeds, 60u);
  EXPECT_EQ(three.seeds, 60u);
  EXPECT_EQ(one.sum.events, three.sum.events);
  ASSERT_FALSE(one.failures.empty());
  ASSERT_EQ(one.failures.size(), three.failures.size());
  EXPECT_EQ(reported_by_three, three.failures.size());
  for (std::size_t i = 0; i < one.failures.size(); ++i) {
    EXPECT_EQ(one.failures[i].seed, three.failures[i].seed);
    EXPECT_EQ(one.failures[i].failure.text, three.failures[i].failure.text);
  }
}

TEST(RunSeeds, EndsAtItsLimitOfFailures) {
  std::size_t reported = 0;
  const auto result = run_without_a_rule(1, 1, reported);
  EXPECT_EQ(reported, 1u);
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_EQ(result.seeds, result.failures[0].seed);
}

TEST(FirstSeed, ComesFromTheEnvironmentOrTheDate) {
  const char* const configured = std::getenv("CEPHEUS_FIRST_SEED");
  const std::string before = configured == nullptr ? "" : configured;
  ASSERT_EQ(setenv("CEPHEUS_FIRST_SEED", "1072230", 1), 0);
  EXPECT_EQ(first_seed(), 1072230u);
  ASSERT_EQ(unsetenv("CEPHEUS_FIRST_SEED"), 0);
  EXPECT_GT(first_seed(), 20'000'000'000u);
  if (configured != nullptr) setenv("CEPHEUS_FIRST_SEED", before.c_str(), 1);
}

}  // namespace
}  // namespace cepheus::sim
