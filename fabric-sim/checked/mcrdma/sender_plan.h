// Seeds whose groups are sender groups.
#pragma once

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

void use_sender_groups(ScenarioPlan& plan);
// No other group's; forged packets use the next number, too, which no group has.
wire::Qpn virtual_qpn_of(const GroupPlan& group);

}  // namespace cepheus::sim
