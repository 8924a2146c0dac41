// Rules that sender groups of three replicas need in the switches at the top of racks (MC-RDMA
// V-B), counted by the switches' own bifurcation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "switch-emulator/engine/mcrdma/bifurcation.h"

namespace cepheus::sim {

// Of one rack's switch. A pattern is a sender and its two receiving hosts.
struct RackRules {
  std::uint64_t one_rack = 0;   // of patterns with both receivers in this rack
  std::uint64_t two_racks = 0;  // of this rack's senders with receivers in different racks
  std::uint64_t sum() const { return one_rack + two_racks; }
  friend bool operator==(const RackRules&, const RackRules&) = default;
};

// Racks of hosts, each at a switch of its own, and one switch that joins them.
class Racks {
 public:
  Racks(std::size_t racks, std::size_t hosts_per_rack);

  // All patterns, counted at one rack's switch. `with_senders_host`: a replica may be at the
  // sender's own host, as in the paper's formula. `groups_per_host`: number of patterns to two
  // racks for each host, or as many as exist; 0: all.
  RackRules count(std::size_t rack, bool with_senders_host,
                  std::uint64_t groups_per_host = 0) const;

 private:
  using Hosts = std::vector<std::size_t>;
  std::size_t rack_of(std::size_t host) const { return host / per_rack_; }
  bool has_rule(std::size_t sender, std::size_t rack, const Hosts& receivers,
                bool with_senders_host) const;
  std::vector<fabric::Branch> branches(std::size_t rack, const Hosts& receivers,
                                       wire::PortId ingress) const;

  const std::size_t per_rack_;
  std::vector<wire::Ipv4> addresses_;          // by host
  std::vector<fabric::SwitchConfig> configs_;  // by rack
  std::vector<fabric::Routes> routes_;
};

}  // namespace cepheus::sim
