// The pairs in which a group's switches have to add its members' floating-point numbers. No code of
// arithmetic/ or of the switch finds them.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fabric-sim/core/network.h"

namespace cepheus::sim {

struct MemberPairs {
  // Members by index: the left one gets the result of both. In the end `first` has that of all.
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::size_t first = 0;
  std::size_t switches = 0;  // of the tree; 0: of no tree

  // In the order of their addresses.
  static MemberPairs by_address(std::span<const wire::Ipv4> members);
  // Over the tree that the switches' views show: each adds its paths in the order of their lowest
  // addresses. Empty: the views show no whole tree.
  static std::optional<MemberPairs> over_tree(const Network& network, wire::McstId id,
                                              std::uint16_t epoch,
                                              std::span<const wire::Ipv4> members);
};

}  // namespace cepheus::sim
