// Seeds whose groups are sender groups.
#pragma once

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

void use_sender_groups(ScenarioPlan& plan);

}  // namespace cepheus::sim
