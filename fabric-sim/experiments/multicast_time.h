// How long multicasts take: set up, one message, its end.
#pragma once

#include <vector>

#include "fabric-sim/experiments/multicast_group.h"
#include "fabric-sim/experiments/testbed.h"

namespace cepheus::sim {

// Of the one group of a testbed that experiments with one group make.
inline constexpr wire::McstId kFirstGroup{198, 18, 0, 1};

// From posting to the last receiver's completion, and to the source's.
struct MulticastTime {
  wire::Duration received, completed;
};

// Registers a group of these hosts, sends one message from the first, and waits. Throws
// std::runtime_error if the group can't be set up.
MulticastTime time_of_multicast(Testbed& testbed, const std::vector<std::size_t>& hosts,
                                std::uint64_t bytes, wire::McstId id = kFirstGroup);

}  // namespace cepheus::sim
