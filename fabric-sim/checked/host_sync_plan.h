// Seeds whose switches leave the groups' PSNs to hosts, which move them on through RESET
// (controller/psn_sync.h).
#pragma once

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

// Keeps rule C1 in all groups: without it nothing tells whose turn a PSN belongs to.
void use_host_sync(ScenarioPlan& plan);

}  // namespace cepheus::sim
