// Turns that are longer than PSNs can be compared, and numbers that begin close before they wrap.
#pragma once

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

// Lets sources jump over 2^22 to 2^32 packets behind some of their messages, or 2^24 at most where
// hosts move their PSNs on, since that takes a step for every 2^22. Groups begin with PSNs, epochs
// and publications close before the wrap. Of sender groups nothing changes.
void use_long_turns(ScenarioPlan& plan, bool host_sync);

}  // namespace cepheus::sim
