// 2,000 seeds of groups with changing sources on failing fabrics: all invariants hold.

#include <gtest/gtest.h>

#include "fabric-sim/checked/group_scenario.h"

namespace cepheus::sim {
namespace {

constexpr std::uint64_t kSeedsPerShard = 250;

class Seeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Seeds, HoldEveryInvariant) {
  const std::uint64_t first = 1 + GetParam() * kSeedsPerShard;
  for (std::uint64_t seed = first; seed < first + kSeedsPerShard; ++seed) {
    const Outcome outcome = run_seed(seed);
    if (!outcome.finding) continue;
    ADD_FAILURE() << "seed " << seed << ": " << to_string(outcome.finding->invariant)
                  << " violated: " << outcome.finding->text << "\n  replay: cepheus-sim --seed "
                  << seed << " --trace";
  }
}

TEST(SeedsWithIncidents, HoldEveryInvariant) {
  PlanOptions options;
  options.incidents = true;
  std::uint64_t evicted = 0, spoofed = 0, gave_up = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    const Outcome outcome = run_seed(seed, options);
    evicted += outcome.evicted;
    spoofed += outcome.spoofed;
    gave_up += outcome.gave_up;
    if (!outcome.finding) continue;
    ADD_FAILURE() << "seed " << seed << ": " << to_string(outcome.finding->invariant)
                  << " violated: " << outcome.finding->text << "\n  replay: cepheus-sim --seed "
                  << seed << " --incidents --trace";
  }
  EXPECT_GT(evicted, 200u);
  EXPECT_GT(spoofed, 1000u);
  EXPECT_LE(gave_up, 3u) << "senders whose retries ended before a silent member was evicted";
}

INSTANTIATE_TEST_SUITE_P(Shards, Seeds, testing::Range<std::uint64_t>(0, 8));

}  // namespace
}  // namespace cepheus::sim
