#include "fabric-sim/checked/stranded.h"

#include <gtest/gtest.h>

#include "fabric-sim/checked/group_scenario.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

// One group on two switches, without any fault; its messages end long before 50 ms.
ScenarioPlan group_without_work(bool has_one_sender = false) {
  PlanOptions options;
  options.switches = 2;
  options.sender_groups = has_one_sender;
  ScenarioPlan plan = make_plan(1, options);
  plan.groups.resize(1);
  plan.groups.front().in_turns = true;
  plan.faults = Faults{};
  plan.late_packets_meet_tombstone = false;
  plan.lasts = 10 * plan.transport.silence();
  return plan;
}

std::size_t leaders_host(const ScenarioPlan& plan) {
  const GroupPlan& group = plan.groups.front();
  return group.members[group.leader].host;
}

// Only silence shows it.
void let_the_leader_die(ScenarioPlan& plan) {
  IncidentPlan death;
  death.kind = IncidentKind::kDeath;
  death.at = 50ms;
  death.host = leaders_host(plan);
  death.noticed = false;
  plan.incidents = {death};
}

void restart_switch(ScenarioPlan& plan, std::size_t number) {
  IncidentPlan restart;
  restart.kind = IncidentKind::kSwitchRestart;
  restart.at = 50ms;
  restart.at_switch = number;
  plan.incidents = {restart};
}

// Expects that members of the plan's group detect that it can't go on, and only by asking.
Outcome expect_to_end_by_questions_only(ScenarioPlan plan) {
  const Outcome outcome = GroupScenario(plan).run();
  EXPECT_FALSE(outcome.failure) << outcome.failure->text;
  plan.transport.presence.first = 1h;
  const Outcome silent = GroupScenario(plan).run();
  EXPECT_TRUE(silent.failure);
  if (silent.failure) {
    EXPECT_EQ(silent.failure->invariant, Invariant::kLiveness);
    EXPECT_NE(silent.failure->text.find(" waits for "), std::string::npos) << silent.failure->text;
  }
  return outcome;
}

TEST(StrandedMember, FindsOutThatItsLeaderHasDied) {
  ScenarioPlan plan = group_without_work();
  let_the_leader_die(plan);
  EXPECT_EQ(expect_to_end_by_questions_only(plan).gave_up, plan.groups.front().members.size() - 1);
}

TEST(StrandedMember, FindsOutThatASwitchHasForgottenTheGroup) {
  for (std::size_t node = 0; node < 2; ++node) {
    ScenarioPlan plan = group_without_work();
    restart_switch(plan, node);
    expect_to_end_by_questions_only(plan);
  }
}

// Members behind that switch end. They can't inform the others, which ask a living leader.
TEST(StrandedMember, WaitsForEverIfTheSwitchDoesNotReportAForgottenGroup) {
  ScenarioPlan plan = group_without_work();
  restart_switch(plan, 1 - plan.topology.hosts[leaders_host(plan)].switch_index);
  for (net::SwitchSpec& spec : plan.topology.switches) spec.config.rules.presence_answer = false;
  const Outcome outcome = GroupScenario(plan).run();
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->invariant, Invariant::kLiveness);
}

TEST(StrandedMember, OfASenderGroupFindsOutThatItsSenderHasDied) {
  ScenarioPlan plan = group_without_work(true);
  let_the_leader_die(plan);
  const Outcome outcome = GroupScenario(plan).run();
  EXPECT_FALSE(outcome.failure) << outcome.failure->text;
  EXPECT_EQ(outcome.gave_up, plan.groups.front().members.size() - 1);
  plan.transport.least_silence = 1h;
  EXPECT_TRUE(GroupScenario(plan).run().failure);
}

TEST(GroupWithoutWork, LivesLongerThanItsMembersWaitForAnAnswer) {
  for (const bool has_one_sender : {false, true}) {
    ScenarioPlan plan = group_without_work(has_one_sender);
    plan.faults.loss = 0.05;
    plan.faults.end = plan.lasts;
    const Outcome outcome = GroupScenario(plan).run();
    EXPECT_FALSE(outcome.failure) << outcome.failure->text;
    EXPECT_EQ(outcome.gave_up, 0u);
    EXPECT_GE(outcome.virtual_time, plan.lasts);
  }
}

}  // namespace
}  // namespace cepheus::sim
