// Where data of a sender group branches (docs/protocol.md, "Sender groups"; MC-RDMA algorithm 1 and
// VI-A for equal-cost paths, V-A for switches at the top of racks alone).
#pragma once

#include <span>
#include <vector>

#include "switch-emulator/engine/routes.h"
#include "wire/mrp.h"

namespace cepheus::fabric {

// Receivers that share one copy of the data: those with the same set of next hops.
struct Branch {
  std::vector<PortId> ports;            // equal cost, rising
  std::vector<std::uint8_t> receivers;  // their indices in the list, rising
  bool is_here = false;                 // the one receiver's own port

  bool is_one() const { return receivers.size() == 1; }
  friend bool operator==(const Branch&, const Branch&) = default;
};

// `ingress`: the source of the data, which gets no copy; none, if unknown. Empty if a receiver has
// no route: `unreachable` is its index in the list.
std::vector<Branch> bifurcate(const SwitchConfig& config, const Routes& routes,
                              std::span<const wire::MrpMember> receivers, PortId ingress,
                              std::size_t& unreachable);

}  // namespace cepheus::fabric
