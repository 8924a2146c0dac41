// The first violated invariant of a run: what follows it is consequence. It stops the simulation.
#pragma once

#include <optional>
#include <string>

#include "fabric-sim/core/simulator.h"

namespace cepheus::sim {

// What must hold whatever happens, by the names that reports use (docs/protocol.md).
enum class Invariant {
  kDelivery,     // every member gets every byte of every message once, in order, unaltered
  kCompletion,   // no sender is told "done" before all members have the message
  kLiveness,     // every operation ends
  kIsolation,    // no packet of a group reaches a host outside it
  kResidue,      // no state is left in a switch, no buffer in use, after the end
  kBalance,      // frames and copies are sent on, taken, held or dropped, each by one name
  kLossless,     // no frame of a lossless link is dropped for want of room
  kTimeLimit,    // switches ask a source again seldom, and never for a receiver that answered RNR
  kConsistency,  // the tables of a switch agree with each other
  kProgress,     // no event loop without end
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

}  // namespace cepheus::sim
