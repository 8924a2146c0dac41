#include "fabric-sim/checked/group_scenario.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

TEST(GroupScenario, SameSeedGivesTheSameTrace) {
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Outcome first = run_seed(seed);
    const Outcome again = run_seed(seed);
    EXPECT_EQ(first.trace_hash, again.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.events, again.events) << "seed " << seed;
    hashes.insert(first.trace_hash);
  }
  EXPECT_EQ(hashes.size(), 40u);
}

TEST(GroupScenario, PrintingTheTraceDoesNotChangeIt) {
  std::ostringstream text;
  EXPECT_EQ(run_seed(7, {}, &text).trace_hash, run_seed(7).trace_hash);
  EXPECT_NE(text.str().find("mrp register"), std::string::npos);
  EXPECT_NE(text.str().find("ack psn"), std::string::npos);
}

TEST(GroupScenario, SeedsCoverTheRules) {
  Outcome sum;
  std::set<std::size_t> switches;
  std::size_t outsiders = 0;
  std::size_t out_of_turn = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const ScenarioPlan plan = make_plan(seed);
    switches.insert(plan.topology.switches.size());
    if (plan.groups[0].members.size() < plan.topology.hosts.size()) ++outsiders;
    if (!plan.groups[0].in_turns) ++out_of_turn;
    const Outcome o = GroupScenario(plan).run();
    sum.turns += o.turns;
    sum.gated += o.gated;
    sum.time_outs += o.time_outs;
    sum.naks += o.naks;
    sum.rnr_naks += o.rnr_naks;
  }
  EXPECT_EQ(switches, (std::set<std::size_t>{1, 2, 3, 4}));
  EXPECT_GT(outsiders, 10u);
  EXPECT_GT(out_of_turn, 5u);
  EXPECT_GT(sum.turns, 300u);
  EXPECT_GT(sum.gated, 300u);
  EXPECT_GT(sum.time_outs, 100u);
  EXPECT_GT(sum.naks, 100u);
  EXPECT_GT(sum.rnr_naks, 300u);
}

// One switch, four hosts, and an epoch with a first PSN so high that the messages cross 2^24.
ScenarioPlan plan_across_the_wrap() {
  PlanOptions options;
  options.switches = 1;
  ScenarioPlan plan = make_plan(1, options);
  plan.topology = net::Topology::star(4, plan.topology.hosts[0].up);
  plan.transport.path_mtu = plan.topology.mtu = 256;
  plan.transport.late_receive = 20us;
  plan.nics.assign(4, plan.nics[0]);
  for (rnic::NicConfig& nic : plan.nics) {
    nic.max_mtu = 256;
    nic.window_packets = 64;
    nic.ack_every = 16;
    nic.seed += 1;
  }
  plan.faults = Faults{};
  plan.faults.loss = 0.0005;
  plan.faults.end = 10s;
  plan.recovery = 10s;
  plan.event_budget = 20'000'000;
  GroupPlan group;
  group.id = wire::McstId(198, 18, 3, 4);
  for (std::uint32_t epoch = 0; epoch < 0x10000; ++epoch) {
    const auto candidate = static_cast<std::uint16_t>(epoch);
    if (wire::group_start_psn(group.id, candidate).value() >
        wire::group_start_psn(group.id, group.epoch).value()) {
      group.epoch = candidate;
    }
  }
  for (std::size_t i = 0; i < 4; ++i) group.members.push_back({i, 3});
  for (std::size_t i = 0; i < 40; ++i) group.messages.push_back({i / 3 % 4, 1700 * 256});
  plan.groups = {group};
  return plan;
}

TEST(GroupScenario, CrossesThePsnWrapWithChangingSources) {
  ScenarioPlan plan = plan_across_the_wrap();
  const wire::Psn start = wire::group_start_psn(plan.groups[0].id, plan.groups[0].epoch);
  std::uint64_t packets = 0;
  for (const MessagePlan& m : plan.groups[0].messages) packets += m.bytes / 256;
  ASSERT_GT(start.value() + packets, wire::Psn::kMask) << "the plan does not reach the wrap";
  plan.faults.end = 1s;
  const Outcome outcome = GroupScenario(plan).run();
  EXPECT_FALSE(outcome.failure) << outcome.failure->text;
  EXPECT_GT(outcome.naks + outcome.time_outs, 5u);
}

}  // namespace
}  // namespace cepheus::sim
