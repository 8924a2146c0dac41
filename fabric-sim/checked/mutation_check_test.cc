#include "fabric-sim/checked/mutation_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "fabric-sim/checked/first_seed.h"
#include "net/rules.h"

namespace cepheus::sim {
namespace {

TEST(MutationCheck, SomeSeedFailsWithoutEachSafetyRule) {
  const std::uint64_t first = first_seed();
  std::printf("rules are switched off for seeds from %llu\n",
              static_cast<unsigned long long>(first));
  // Ten times the seeds that the rarest failure needs.
  const auto results = check_mutations(first, 20'000);
  for (const net::Rule& rule : net::kRules) {
    const bool is_checked = std::ranges::count(results, rule.name, &MutationResult::rule) > 0;
    EXPECT_EQ(is_checked, rule.kind == net::RuleKind::kSafety) << rule.name;
  }
  for (const MutationResult& result : results) {
    EXPECT_TRUE(result.caught) << result.rule << " is off and no seed fails";
  }
  std::printf("%s", to_table(results).c_str());
}

TEST(MutationCheck, WritesOneRowForEachRule) {
  MutationResult caught;
  caught.rule = "gate";
  caught.caught = true;
  caught.seed = 17;
  caught.failure = {Invariant::kCompletion, {}, "too early"};
  MutationResult missed;
  missed.rule = "other";
  MutationResult elsewhere = missed;
  elsewhere.where = "lossless links";
  EXPECT_EQ(to_table({caught, missed, elsewhere}),
            "| rule switched off | first failing seed | invariant | how it failed |\n"
            "|---|---|---|---|\n"
            "| `gate` | 17 | completion | too early |\n"
            "| `other` | none | | not caught |\n"
            "| `other`, lossless links | none | | not caught |\n");
}

}  // namespace
}  // namespace cepheus::sim
