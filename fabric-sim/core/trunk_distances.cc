#include "fabric-sim/core/trunk_distances.h"

#include <algorithm>
#include <deque>

namespace cepheus::sim {

std::vector<std::size_t> trunk_distances(const net::Topology& topology, std::size_t from,
                                         const std::vector<std::size_t>& without_trunks) {
  std::vector<std::vector<std::size_t>> neighbours(topology.switches.size());
  for (std::size_t i = 0; i < topology.trunks.size(); ++i) {
    if (std::ranges::find(without_trunks, i) != without_trunks.end()) continue;
    const net::TrunkSpec& trunk = topology.trunks[i];
    neighbours[trunk.a].push_back(trunk.b);
    neighbours[trunk.b].push_back(trunk.a);
  }
  std::vector<std::size_t> distances(topology.switches.size(), kNoPath);
  std::deque<std::size_t> next{from};
  distances[from] = 0;
  for (; !next.empty(); next.pop_front()) {
    for (const std::size_t to : neighbours[next.front()]) {
      if (distances[to] != kNoPath) continue;
      distances[to] = distances[next.front()] + 1;
      next.push_back(to);
    }
  }
  return distances;
}

}  // namespace cepheus::sim
