// Each attack of a hostile member, alone in a seed: its group and others hold.
#include "fabric-sim/checked/reductions/hostile_member.h"

#include <gtest/gtest.h>

#include "fabric-sim/checked/run_seed.h"

namespace cepheus::sim {
namespace {

class HostileMembers : public testing::TestWithParam<std::uint32_t> {};

TEST_P(HostileMembers, HarmNoOthers) {
  int attacked = 0;
  std::uint64_t reduced = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    ScenarioPlan plan = make_plan(seed, {.incidents = true, .reductions = true});
    std::erase_if(plan.incidents, [](const IncidentPlan& incident) {
      return incident.kind != IncidentKind::kHostileMember;
    });
    if (plan.incidents.empty()) continue;
    plan.incidents.front().attacks = 1u << GetParam();
    ++attacked;
    const Outcome outcome = run_plan(plan);
    ASSERT_FALSE(outcome.failure) << "seed " << seed << ": " << outcome.failure->text;
    reduced += outcome.reduced;
  }
  EXPECT_GT(attacked, 30);
  EXPECT_GT(reduced, 300u);
}

INSTANTIATE_TEST_SUITE_P(Attacks, HostileMembers, testing::Range(0u, kAttacks));

}  // namespace
}  // namespace cepheus::sim
