#include "fabric-sim/checked/reductions/reduction_plan.h"

#include <algorithm>

#include "fabric-sim/core/random.h"

namespace cepheus::sim {

using namespace std::chrono_literals;

namespace {

bool has_marks(const net::Topology& topology) {
  return std::ranges::any_of(topology.hosts, [](const auto& host) { return host.down.ecn.on; });
}

}  // namespace

ReductionPlan make_reduction_plan(const GroupPlan& group, const ScenarioPlan& scenario) {
  Random random(scenario.seed ^ group.id.value());
  ReductionPlan plan;
  plan.group = group;
  plan.group.messages.clear();
  plan.group.loss_ends = true;
  const std::uint32_t path_mtu = scenario.transport.path_mtu;
  plan.reduction.unit =
      static_cast<std::uint16_t>(random.chance(0.5) ? path_mtu : random.between(1u, path_mtu));
  plan.reduction.window = static_cast<std::uint16_t>(1u << random.below(5));
  const std::size_t operations = 1 + random.below(16);
  for (std::size_t i = 0; i < operations; ++i) {
    ReductionOperation one;
    if (random.chance(0.6)) {
      one.op = wire::ReductionOp::kOr;
      one.bytes = static_cast<std::uint32_t>(
          random.below(random.chance(0.5) ? 64 : 4 * std::uint64_t{plan.reduction.unit} + 1));
    }
    plan.operations.push_back(one);
  }
  plan.most_begun = 1 + random.below(4);
  if (random.chance(0.5)) plan.longest_pause = random.between(Duration{0}, Duration{3ms});
  if (!has_marks(scenario.topology)) return plan;
  // Enough to fill queues.
  plan.reduction.unit = static_cast<std::uint16_t>(path_mtu);
  plan.reduction.window = static_cast<std::uint16_t>(8u << random.below(4));
  for (ReductionOperation& one : plan.operations) {
    one = {wire::ReductionOp::kOr, static_cast<std::uint32_t>(random.below(32 * path_mtu))};
  }
  return plan;
}

}  // namespace cepheus::sim
