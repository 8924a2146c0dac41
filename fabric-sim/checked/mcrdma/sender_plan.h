// Seeds whose groups are sender groups.
#pragma once

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

void use_sender_groups(ScenarioPlan& plan);
// Apart from those of a host's other groups, retries included.
wire::Qpn virtual_qpn_of(const GroupPlan& group);

}  // namespace cepheus::sim
