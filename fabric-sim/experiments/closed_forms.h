// Times by arithmetic, without queues behind the senders, acknowledgements and software: what the
// links need.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric-sim/experiments/exchanges.h"
#include "net/topology.h"

namespace cepheus::sim {

// Numbers of links between hosts, by the shortest ways. All links have the first host's rate and
// delay, and switches take no time.
class Ways {
 public:
  explicit Ways(const net::Topology& topology);

  std::size_t hosts() const { return switch_of_.size(); }
  // From one host to another.
  std::size_t links(std::size_t from, std::size_t to) const {
    return 2 + trunks_[switch_of_[from]][switch_of_[to]];
  }
  // From the farthest host to the switch of host `at`.
  std::size_t links_to_switch_of(std::size_t at) const;
  // Between the two farthest hosts.
  std::size_t most_links() const;

  // Microseconds of packets with these payloads, one after the other, over a number of links.
  double us(const std::vector<std::uint64_t>& payloads, std::size_t links,
            std::size_t headers) const;
  // ... of a message.
  double us_of_message(std::uint64_t bytes, std::size_t links) const;
  double us_on_link(std::uint64_t frame_bytes) const;

 private:
  std::vector<std::size_t> switch_of_;            // of each host
  std::vector<std::vector<std::size_t>> trunks_;  // from a switch with hosts to each switch
  const wire::BitRate rate_;
  const wire::Duration delay_;
};

// Rank r is host r. `post_us`: of the program, for each message.
double us_of(const Exchanges& exchanges, const Ways& ways, double post_us = 0);

// A reduction with a result of `bytes` in units of this many: up to the root, and down again.
double us_of_reduction(std::uint64_t bytes, std::uint64_t unit, const Ways& ways,
                       std::size_t links_to_root);
std::size_t units_of(std::uint64_t bytes, std::uint64_t unit);

}  // namespace cepheus::sim
