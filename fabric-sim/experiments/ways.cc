#include "fabric-sim/experiments/ways.h"

#include <algorithm>

#include "fabric-sim/core/trunk_distances.h"

namespace cepheus::sim {

Ways::Ways(const net::Topology& topology)
    : trunks_(topology.switches.size()),
      rate_(topology.hosts.front().up.rate),
      delay_(topology.hosts.front().up.delay) {
  for (const net::HostSpec& host : topology.hosts) {
    switch_of_.push_back(host.switch_index);
    auto& trunks = trunks_[host.switch_index];
    if (trunks.empty()) trunks = trunk_distances(topology, host.switch_index);
  }
}

std::size_t Ways::most_links() const {
  std::size_t most = 0;
  for (std::size_t i = 0; i < hosts(); ++i) {
    for (std::size_t j = 0; j < hosts(); ++j) most = std::max(most, links(i, j));
  }
  return most;
}

}  // namespace cepheus::sim
