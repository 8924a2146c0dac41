// One way out of a group's tree: a member at a port of this switch, or the switch that leads on to
// some of them.
#pragma once

#include <limits>

#include "switch-emulator/engine/packed24.h"
#include "switch-emulator/engine/switch.h"

namespace cepheus::fabric {

// A path's number in its table.
using PathNo = std::uint16_t;
inline constexpr PathNo kNoPath = std::numeric_limits<PathNo>::max();

// What a hardware table would hold. A host's address is its port's (PortConfig::host).
struct Path {
  PortId port;
  bool is_host = false;
  Packed24<Qpn> qpn;  // member's, if it is a host
};

}  // namespace cepheus::fabric
