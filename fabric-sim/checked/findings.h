// The first violated invariant of a run, which stops the simulation: later ones would be
// consequences.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "fabric-sim/core/simulator.h"

namespace cepheus::sim {

// The invariants, by the names that reports use (docs/protocol.md).
enum class Invariant {
  kDelivery,    // every member gets every byte of every message once, in order, unaltered
  kCompletion,  // no send completes before all members have the message
  kLiveness,    // every operation ends
  kIsolation,   // no packet of a group reaches a host outside it
  kResidue,     // no state is left in a switch, no buffer in use, after the end
  kBalance,     // frames and copies are sent on, consumed, held, or dropped with a named reason
  kLength,      // no copy is too long for its port, and a group's packets have one length
  kLossless,    // no frame of a lossless link is dropped because a buffer is full
  // Switches repeat requests to a source seldom, and never for a receiver that answered RNR.
  kTimeLimit,
  kConsistency,  // the tables of a switch agree with each other
  kProgress,     // no endless loop of events
};
const char* to_string(Invariant invariant);

struct Finding {
  Invariant invariant;
  Instant at;
  std::string text;
};

class Findings {
 public:
  explicit Findings(Simulator& simulator) : simulator_(simulator) {}
  void report(Invariant invariant, std::string text);
  const std::optional<Finding>& first() const { return first_; }

 private:
  Simulator& simulator_;
  std::optional<Finding> first_;
};

inline const char* to_string(Invariant invariant) {
  // In the order of the enumeration.
  constexpr std::array kNames = {"delivery", "completion",  "liveness", "isolation",
                                 "residue",  "balance",     "length",   "lossless",
                                 "patience", "consistency", "progress"};
  static_assert(kNames.size() == static_cast<std::size_t>(Invariant::kProgress) + 1);
  return kNames[static_cast<std::size_t>(invariant)];
}

inline void Findings::report(Invariant invariant, std::string text) {
  if (first_) return;
  simulator_.trace().note(simulator_.now(), to_string(invariant), text);
  first_ = Finding{invariant, simulator_.now(), std::move(text)};
  simulator_.stop();
}

}  // namespace cepheus::sim
