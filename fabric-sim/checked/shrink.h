// The smallest part of a failing seed that still fails in the same way.
#pragma once

#include <optional>

#include "fabric-sim/checked/group_scenario.h"
#include "fabric-sim/checked/reduction.h"

namespace cepheus::sim {

struct Shrunk {
  Reduction without;
  ScenarioPlan plan;  // what is left
  Outcome outcome;    // ... and how it fails
  std::size_t runs = 0;
};

// Leaves out what can be left out of the seed's plan, beside `without`, in halves, quarters and so
// on, for as long as the same invariant breaks with the same words (numbers apart) and, where rules
// are switched off, all holds with them on. Nothing if it holds to begin with. `most_runs` bounds
// what it takes: a smaller case may be left then.
std::optional<Shrunk> shrink(std::uint64_t seed, const PlanOptions& options,
                             const Reduction& without_already = {}, std::size_t most_runs = 3000);

}  // namespace cepheus::sim
