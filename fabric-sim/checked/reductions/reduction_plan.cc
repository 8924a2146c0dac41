#include "fabric-sim/checked/reductions/reduction_plan.h"

#include "fabric-sim/core/random.h"

namespace cepheus::sim {

using namespace std::chrono_literals;

ReductionPlan make_reduction_plan(const GroupPlan& group, const TransportPlan& transport,
                                  std::uint64_t seed) {
  Random random(seed ^ group.id.value());
  ReductionPlan plan;
  plan.group = group;
  plan.group.messages.clear();
  plan.group.loss_ends = true;
  plan.reduction.unit = static_cast<std::uint16_t>(
      random.chance(0.5) ? transport.path_mtu : random.between(1u, transport.path_mtu));
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
  return plan;
}

}  // namespace cepheus::sim
