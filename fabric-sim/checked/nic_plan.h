// Seeds whose hosts have NICs of different makes.
#pragma once

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

// Each host draws one: soft-roce's own manners, one other manner, or those of rdma_rxe.
void use_other_nics(ScenarioPlan& plan);

}  // namespace cepheus::sim
