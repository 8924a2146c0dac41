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
  std::uint64_t left_out = 0;      // units before the first: numbers and PSNs wrap soon
  std::size_t most_begun = 1;      // operations that a member begins before the first has ended
  wire::Duration longest_pause{};  // before a member begins an operation
  // One member is late to one operation, and nobody gives it up.
  std::size_t late_member = 0, late_operation = 0;
  wire::Duration late_by{};
};

// The reductions of one of the plan's groups. Its messages are left out, and it has no evictions.
ReductionPlan make_reduction_plan(const GroupPlan& group, const ScenarioPlan& plan);

}  // namespace cepheus::sim
