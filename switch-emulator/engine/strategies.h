// How a group is served: what is chosen for it when it is registered, by the names of the topology
// file.
#pragma once

#include "switch-emulator/engine/behaviour.h"
#include "switch-emulator/engine/switch.h"

namespace cepheus::fabric {

class Numbering;

struct Strategies {
  const Behaviour* behaviour;  // what it does with its packets
  const Numbering* numbering;  // how hosts' PSNs count
  net::WriteMode writes;       // what it does with RDMA WRITEs
  net::CnpPolicy cnps;         // which congestion notifications its source hears
  Duration cnp_window;

  // As this switch is told. What they point to has no state and outlives everything.
  static Strategies of(const SwitchConfig& config);
};

}  // namespace cepheus::fabric
