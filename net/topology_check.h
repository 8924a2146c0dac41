// Is a topology one that a fabric can be built from? The same question for files and for code.
#pragma once

#include <optional>
#include <string>

#include "net/topology.h"

namespace cepheus::net {

struct TopologyProblem {
  enum class Of { kFabric, kSwitch, kHost, kTrunk };
  Of of;
  std::size_t index = 0;  // of the switch, host or trunk
  std::string text;       // what is wrong and what to write instead
};

std::optional<TopologyProblem> find_problem(const Topology& topology);

}  // namespace cepheus::net
