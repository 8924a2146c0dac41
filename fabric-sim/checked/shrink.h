// The smallest part of a failing seed that still fails in the same way.
#pragma once

#include <optional>

#include "fabric-sim/checked/omitted_parts.h"
#include "fabric-sim/checked/outcome.h"

namespace cepheus::sim {

struct Shrunk {
  OmittedParts without;
  ScenarioPlan plan;  // the remaining plan
  Outcome outcome;    // ... and its failure
  std::size_t runs = 0;
};

// Removes parts of the seed's plan, besides `without`, in halves, quarters and so on, while the
// same invariant fails with the same text (except for numbers), and, if rules are off, all
// invariants hold with them on. Nothing if the seed does not fail at all. `most_runs` limits the
// cost: the result may then be larger than necessary.
std::optional<Shrunk> shrink(std::uint64_t seed, const PlanOptions& options,
                             const OmittedParts& without_already = {},
                             std::size_t most_runs = 3000);

}  // namespace cepheus::sim
