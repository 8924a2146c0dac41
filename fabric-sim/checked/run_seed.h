// Runs a plan as a GroupScenario, or as a ReductionScenario if its groups reduce.
#pragma once

#include <iosfwd>

#include "fabric-sim/checked/outcome.h"
#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

// `trace` gets the run as text and `recording` a timeline, if not null.
Outcome run_plan(const ScenarioPlan& plan, std::ostream* trace = nullptr,
                 std::ostream* recording = nullptr);
Outcome run_seed(std::uint64_t seed, const PlanOptions& options = {},
                 std::ostream* trace = nullptr);

}  // namespace cepheus::sim
