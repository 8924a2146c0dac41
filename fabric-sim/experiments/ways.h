// Numbers of links between the hosts of a fabric, by the shortest paths.
#pragma once

#include <vector>

#include "net/topology.h"

namespace cepheus::sim {

class Ways {
 public:
  // All links have the first host's rate and delay.
  explicit Ways(const net::Topology& topology);

  std::size_t hosts() const { return switch_of_.size(); }
  wire::BitRate rate() const { return rate_; }
  wire::Duration delay() const { return delay_; }
  // From one host to another.
  std::size_t links(std::size_t from, std::size_t to) const {
    return 2 + trunks_[switch_of_[from]][switch_of_[to]];
  }
  // Between the two farthest hosts.
  std::size_t most_links() const;
  // From the farthest host to the switch in the middle.
  std::size_t links_to_middle() const { return (most_links() + 1) / 2; }

 private:
  std::vector<std::size_t> switch_of_;            // of each host
  std::vector<std::vector<std::size_t>> trunks_;  // from a switch with hosts to each switch
  const wire::BitRate rate_;
  const wire::Duration delay_;
};

}  // namespace cepheus::sim
