#include "fabric-sim/checked/fabric_plan.h"

#include <gtest/gtest.h>

#include <map>

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

TEST(FabricPlan, DrawsMostlySmallFabricsAndSomeOfHundredsOfHosts) {
  constexpr std::uint64_t kSeeds = 2000;
  std::map<std::string, std::size_t> kinds;
  std::size_t up_to_16 = 0, beyond_128 = 0, largest_group = 0, with_hellos = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const ScenarioPlan plan = make_plan(seed, on_fabrics());
    const std::size_t hosts = plan.topology.hosts.size();
    ASSERT_GE(hosts, 4u);
    ASSERT_LE(hosts, 512u);
    ASSERT_GT(plan.topology.trunks.size(), plan.topology.switches.size() - 1)
        << "seed " << seed << " has one way only";
    if (hosts <= 16) ++up_to_16;
    if (hosts > 128) ++beyond_128;
    if (plan.topology.hello.count() > 0) ++with_hellos;
    for (const GroupPlan& group : plan.groups) {
      largest_group = std::max(largest_group, group.members.size());
    }
    ++kinds[plan.topology.switches.front().name];
  }
  EXPECT_GT(up_to_16, kSeeds * 7 / 10);
  EXPECT_GT(beyond_128, 0u);
  EXPECT_LT(beyond_128, kSeeds / 100);
  EXPECT_GT(largest_group, 128u);
  EXPECT_GT(with_hellos, kSeeds / 5);
  EXPECT_GT(kinds["leaf0"], kSeeds / 3);
  EXPECT_GT(kinds["edge0"], kSeeds / 3);
}

TEST(FabricPlan, CutsTrunksOfTheSameFabric) {
  PlanOptions cut = on_fabrics();
  cut.cuts = true;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const ScenarioPlan plan = make_plan(seed, cut);
    EXPECT_EQ(plan.topology.hosts.size(), make_plan(seed, on_fabrics()).topology.hosts.size());
    EXPECT_FALSE(plan.cut.trunks.empty());
    EXPECT_EQ(plan.topology.hello, kHello);
  }
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
