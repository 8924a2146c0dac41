// What a seed determines about the reductions of one group, beside its members and its fabric.
#pragma once

#include <vector>

#include "fabric-sim/checked/scenario_plan.h"
#include "wire/mrp.h"
#include "wire/reduction.h"

namespace cepheus::sim {

struct ReductionOperation {
  wire::ReductionOp op = wire::ReductionOp::kNone;
  std::uint32_t bytes = 0;
};

struct ReductionPlan {
  GroupPlan group;  // without messages
  wire::MrpReduction reduction;
  std::vector<ReductionOperation> operations;
  std::size_t most_begun = 1;      // operations that a member begins before the first has ended
  wire::Duration longest_pause{};  // before a member begins an operation
};

// The reductions of one of the plan's groups. Its messages are left out, and it has no evictions.
ReductionPlan make_reduction_plan(const GroupPlan& group, const ScenarioPlan& plan);

}  // namespace cepheus::sim
