#include "fabric-sim/checked/findings.h"

namespace cepheus::sim {

const char* to_string(Invariant invariant) {
  switch (invariant) {
    case Invariant::kDelivery:
      return "delivery";
    case Invariant::kCompletion:
      return "completion";
    case Invariant::kLiveness:
      return "liveness";
    case Invariant::kIsolation:
      return "isolation";
    case Invariant::kResidue:
      return "residue";
    case Invariant::kBalance:
      return "balance";
    case Invariant::kLossless:
      return "lossless";
    case Invariant::kPatience:
      return "patience";
    case Invariant::kConsistency:
      return "consistency";
    case Invariant::kProgress:
      return "progress";
  }
  return "unknown";
}

void Findings::report(Invariant invariant, std::string text) {
  if (first_) return;
  simulator_.trace().note(simulator_.now(), to_string(invariant), text);
  first_ = Finding{invariant, simulator_.now(), std::move(text)};
  simulator_.stop();
}

}  // namespace cepheus::sim
