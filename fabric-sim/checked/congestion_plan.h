// Seeds whose switches have queues that mark, and lossless links with hardly any room.
#pragma once

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

// Queues of a few packets, that mark early; in most seeds all links are lossless as well, and nothing
// is doubled or held back on the way: what a cable makes of its own no headroom can count on. In some
// of them switches halt groups. Some policy for notifications in each switch; most NICs listen to
// marks and pace themselves.
void use_congestion(ScenarioPlan& plan);

}  // namespace cepheus::sim
