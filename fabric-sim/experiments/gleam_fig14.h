// HPL's broadcasts on one grid of nodes, simulated whole or extrapolated from a part of the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "fabric-sim/experiments/report.h"

namespace cepheus::sim {

enum class Placement { kConsecutive, kRandom };

struct GridCase {
  std::size_t n = 0;        // n times n nodes
  std::uint64_t whole = 0;  // bytes of each broadcast
  // Simulated bytes. If they are fewer than `whole`, half as many are simulated as well, and the
  // line through both times is extended to `whole`. The rows' notes tell it.
  std::uint64_t simulated = 0;
  unsigned seeds = 1;
  std::optional<double> paper_gleam = {}, paper_rival = {};  // ms
};

void measure_grid(const GridCase& c, Placement placement, Report& report);

}  // namespace cepheus::sim
