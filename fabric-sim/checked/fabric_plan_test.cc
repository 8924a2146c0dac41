#include "fabric-sim/checked/fabric_plan.h"

#include <gtest/gtest.h>

#include "fabric-sim/checked/group_scenario.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

PlanOptions on_fabrics() {
  PlanOptions options;
  options.fabrics = true;
  return options;
}

// A group within the first leaf, with a seed without faults.
ScenarioPlan group_of_one_leaf() {
  ScenarioPlan plan = make_plan(1, on_fabrics());
  const net::SwitchConfig times = plan.topology.switches.front().config;
  plan.topology = net::leaf_spine(2, 2, 2, plan.topology.hosts.front().up);
  plan.topology.hello = {};
  for (net::SwitchSpec& spec : plan.topology.switches) {
    const std::string name = spec.name;
    spec.config = times;
    spec.config.name = name;
  }
  plan.nics.assign(4, plan.nics.front());
  plan.faults = Faults{};
  GroupPlan& group = plan.groups.front();
  group.members = {{0, 3}, {1, 3}};
  group.leader = 0;
  group.messages = {{0, 300}, {1, 300}};
  plan.groups.resize(1);
  // After the set-up of 3.6 ms, and before its messages end.
  plan.incidents = {{.kind = IncidentKind::kSwitchRestart, .at = 4ms}};
  return plan;
}

TEST(SwitchRestart, EndsNoGroupThatTheSwitchDoesNotHold) {
  ScenarioPlan plan = group_of_one_leaf();
  plan.incidents[0].at_switch = 1;
  EXPECT_FALSE(GroupScenario(plan).run().failure);
  plan.faults = {.loss = 1, .begin = 5ms, .end = 5s};
  for (std::uint32_t i = 0; i < 300; ++i) plan.groups.front().messages.push_back({i % 2, 300});
  const Outcome outcome = GroupScenario(plan).run();
  ASSERT_TRUE(outcome.failure) << "every other failure is a bug";
  EXPECT_EQ(outcome.failure->invariant, Invariant::kLiveness);
}

TEST(SwitchRestart, MayEndThoseThatItHolds) {
  ScenarioPlan plan = group_of_one_leaf();
  plan.incidents[0].at_switch = 0;
  for (std::uint32_t i = 0; i < 300; ++i) plan.groups.front().messages.push_back({i % 2, 300});
  EXPECT_FALSE(GroupScenario(plan).run().failure);
}

// A switch did not know that a trunk was cut, found it dark, and reported it only after the repair:
// groups that had just begun over it ended.
TEST(SwitchRestart, SeesWhichTrunksAreCut) {
  ScenarioPlan plan = group_of_one_leaf();
  plan.topology.hello = kHello;
  plan.incidents[0].at_switch = 0;
  plan.cut = {.trunks = {0}, .at = 1ms, .lasts = 20ms};
  plan.groups.front().members = {{0, 3}, {2, 3}};
  // Beyond the far end, which would choose the trunk.
  plan.groups.front().leader = 1;
  for (std::uint32_t i = 1; i <= 6; ++i) {  // over either spine
    GroupPlan again = plan.groups.front();
    again.id = wire::McstId(again.id.value() + i);
    again.starts = plan.cut.at + plan.cut.lasts + 50us;
    plan.groups.push_back(again);
  }
  plan.has_successors = true;
  const Outcome outcome = GroupScenario(plan).run();
  EXPECT_FALSE(outcome.failure) << outcome.failure->text;
}

}  // namespace
}  // namespace cepheus::sim
