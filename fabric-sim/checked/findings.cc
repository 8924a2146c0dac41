#include "fabric-sim/checked/findings.h"

#include <array>

namespace cepheus::sim {

const char* to_string(Invariant invariant) {
  // In the order of the enumeration.
  constexpr std::array kNames = {"delivery", "completion",  "liveness", "isolation",
                                 "residue",  "balance",     "length",   "lossless",
                                 "patience", "consistency", "progress"};
  static_assert(kNames.size() == static_cast<std::size_t>(Invariant::kProgress) + 1);
  return kNames[static_cast<std::size_t>(invariant)];
}

void Findings::report(Invariant invariant, std::string text) {
  if (first_) return;
  simulator_.trace().note(simulator_.now(), to_string(invariant), text);
  first_ = Finding{invariant, simulator_.now(), std::move(text)};
  simulator_.stop();
}

}  // namespace cepheus::sim
