// Settings of simulated leaders: live times, shortened.
#pragma once

#include "controller/sender_registration.h"
#include "fabric-sim/checked/scenario_plan.h"
#include "fabric-sim/core/host.h"

namespace cepheus::sim {

// For a group with a McstID.
mrp::RegistrationConfig leader_config(const Host& host, const GroupPlan& plan,
                                      const TransportPlan& transport);
// For a sender group.
mrp::SenderConfig sender_config(const Host& host, const GroupPlan& plan,
                                const TransportPlan& transport);

}  // namespace cepheus::sim
