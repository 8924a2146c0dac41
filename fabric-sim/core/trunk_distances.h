// Numbers of trunks between switches, by the shortest paths.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "net/topology.h"

namespace cepheus::sim {

inline constexpr std::size_t kNoPath = std::numeric_limits<std::size_t>::max();

// From one switch to each switch, by index; kNoPath if there is no path without these trunks.
std::vector<std::size_t> trunk_distances(const net::Topology& topology, std::size_t from,
                                         const std::vector<std::size_t>& without_trunks = {});

}  // namespace cepheus::sim
