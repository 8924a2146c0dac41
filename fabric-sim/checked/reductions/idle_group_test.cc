// A reduction group without operations under way waits for nobody: its switches outlive a silent device.
// Simulated members ask nothing meanwhile; libmcast's have their test in two_reducers.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "fabric-sim/checked/reductions/reduction_program.h"
#include "fabric-sim/core/network.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kIdleMembers = 4;

ReductionPlan plan_of_idle_group() {
  ReductionPlan plan;
  plan.group.id = wire::McstId(198, 18, 0, 1);
  plan.group.epoch = 1;
  plan.group.loss_ends = true;
  for (std::size_t i = 0; i < kIdleMembers; ++i) plan.group.members.push_back({i, 0});
  plan.reduction = {wire::MrpReduction::kGather, 256, 8};
  plan.operations.assign(4, {});
  return plan;
}

std::uint64_t probes_of(const Network& network) {
  std::uint64_t sum = 0;
  for (const auto& node : network.switches()) {
    sum += node->engine().counters()[fabric::Counter::kReductionProbes];
  }
  return sum;
}

TEST(IdleGroup, OutlivesASilentDevice) {
  Simulator simulator(10'000'000);
  Findings findings(simulator);
  net::LinkConfig link;
  link.rate = wire::BitRate{25'000'000'000};
  link.delay = 2us;
  Network network(simulator, net::leaf_spine(2, 1, kIdleMembers / 2, link),
                  std::vector<rnic::NicConfig>(kIdleMembers));
  ReductionLedger ledger(plan_of_idle_group(), findings);
  const TransportPlan transport;
  std::vector<std::unique_ptr<ReductionProgram>> members;
  std::vector<wire::MrpMember> names;
  for (std::size_t i = 0; i < kIdleMembers; ++i) {
    members.push_back(
        std::make_unique<ReductionProgram>(simulator, network.host(i), ledger, i, transport, i));
    names.push_back(members.back()->member());
  }
  members[ledger.plan().group.leader]->lead(names);
  simulator.run(simulator.now() + 1s);
  ASSERT_TRUE(std::ranges::all_of(members, [](const auto& each) { return each->is_active(); }));

  network.host(kIdleMembers - 1).stall_nic(simulator.now() + 60s);
  simulator.run(simulator.now() + 60s);
  EXPECT_EQ(probes_of(network), 0u);
  for (const auto& member : members) EXPECT_TRUE(member->begin(0));
  simulator.run(simulator.now() + 1s);
  EXPECT_TRUE(ledger.is_done());
  EXPECT_FALSE(findings.first()) << findings.first()->text;
}

}  // namespace
}  // namespace cepheus::sim
