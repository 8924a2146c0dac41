// Seeds with sender groups only.
#pragma once

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

void use_sender_groups(ScenarioPlan& plan);
// A number of no other group; forged packets also use the next number, which no group has.
wire::Qpn virtual_qpn_of(const GroupPlan& group);

}  // namespace cepheus::sim
