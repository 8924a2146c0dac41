#include "fabric-sim/checked/run_seed.h"

#include "fabric-sim/checked/group_scenario.h"
#include "fabric-sim/checked/reductions/reduction_scenario.h"

namespace cepheus::sim {

Outcome run_plan(const ScenarioPlan& plan, std::ostream* trace, std::ostream* recording) {
  return plan.reduces ? ReductionScenario(plan, trace, recording).run()
                      : GroupScenario(plan, trace, recording).run();
}

Outcome run_seed(std::uint64_t seed, const PlanOptions& options, std::ostream* trace) {
  return run_plan(make_plan(seed, options), trace);
}

}  // namespace cepheus::sim
