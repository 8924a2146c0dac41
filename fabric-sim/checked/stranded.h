// Whether a member waits for a group that can't go on (docs/protocol.md, "Members that die or
// stall", rules 17 to 21).
#pragma once

#include <optional>

#include "fabric-sim/checked/incidents.h"
#include "fabric-sim/core/network.h"

namespace cepheus::sim {

// A member that takes part in the group, although its leader is dead, the group has ended at
// another living member, or a switch on the way to the leader has no table of it. Nothing for
// sender groups, because their switches learn the group again.
std::optional<std::size_t> stranded_member(const Network& network, const Victim& group);

}  // namespace cepheus::sim
