// What plans are put together from, drawn by their seeds.
#pragma once

#include "fabric-sim/checked/faults.h"
#include "fabric-sim/core/random.h"
#include "net/topology.h"

namespace cepheus::sim {

// Faults wait for their phase; how long they hold a frame back is fixed with the link.
net::LinkConfig make_link(Random& random, const Faults& faults);
// Times that fit those of simulated hosts, and how much the gate holds.
void configure_switch(Random& random, net::SwitchSpec& spec, const net::Rules& rules);

}  // namespace cepheus::sim
