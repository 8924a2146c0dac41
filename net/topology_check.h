// Checks whether a fabric can be built from a topology, from a file or from code.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "net/topology.h"

namespace cepheus::net {

inline constexpr std::size_t kMaxNameLength = 63;  // of hosts and switches

struct TopologyProblem {
  enum class Of { kFabric, kSwitch, kHost, kTrunk };
  Of of;
  std::size_t index = 0;  // of the switch, host or trunk
  std::string text;       // the error and its remedy
};

std::optional<TopologyProblem> find_problem(const Topology& topology);

}  // namespace cepheus::net
