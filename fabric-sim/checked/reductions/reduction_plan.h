// The reductions of one group: operations, units, and the member that is late. A seed draws them.
#pragma once

#include <vector>

#include "fabric-sim/checked/scenario_plan.h"
#include "libmcast/engine/reduction.h"
#include "wire/mrp.h"

namespace cepheus::sim {

struct ReductionOperation {
  mcast::ReductionUnits::Kind kind;
  std::uint32_t bytes = 0;  // whole values
  mcast::ReductionUnits::Place place = mcast::ReductionUnits::Place::kSlots;
};

struct ReductionPlan {
  GroupPlan group;  // without messages
  wire::MrpReduction reduction;
  std::vector<ReductionOperation> operations;
  std::uint64_t skipped = 0;       // units before the first operation: numbers and PSNs wrap soon
  std::size_t most_begun = 1;      // operations of a member that may be under way at once
  wire::Duration longest_pause{};  // before a member begins an operation
  // One member begins one operation late. All others must wait for it.
  std::size_t late_member = 0, late_operation = 0;
  wire::Duration late_by{};
};

// Reductions of the members of one of the plan's groups. The group loses its messages, and evicts
// no members.
ReductionPlan make_reduction_plan(const GroupPlan& group, const ScenarioPlan& plan);

}  // namespace cepheus::sim
