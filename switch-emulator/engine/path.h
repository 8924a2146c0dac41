// One way out of a group's table: a member at a port of this switch, or the switch that leads on to
// some of them.
#pragma once

#include <limits>
#include <vector>

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

  // Everything up to here has been acknowledged by all behind this path.
  Psn acked() const { return acked_; }
  // T: packets of this host's finished turns, modulo 2^24; and the messages in them, for the MSN.
  std::uint32_t turns() const { return turns_.value(); }
  std::uint32_t messages() const { return messages_.value(); }

 private:
  friend class Turn;  // alone changes these
  Packed24<Psn> acked_, turns_, messages_;
};

// Congestion control needs 2 bytes more.
inline constexpr std::size_t kMostPathBytes = 20;
static_assert(sizeof(Path) + 2 <= kMostPathBytes);

using Paths = std::vector<Path>;

}  // namespace cepheus::fabric
