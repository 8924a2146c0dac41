// How leaders of simulated groups register them: live times, made shorter.
#pragma once

#include "controller/sender_registration.h"
#include "fabric-sim/checked/scenario_plan.h"
#include "fabric-sim/core/host.h"

namespace cepheus::sim {

// Of a group with a McstID.
mrp::RegistrationConfig leader_config(const Host& host, const GroupPlan& plan,
                                      const TransportPlan& transport);
// Of a sender group.
mrp::SenderConfig sender_config(const Host& host, const GroupPlan& plan,
                                const TransportPlan& transport);

}  // namespace cepheus::sim
