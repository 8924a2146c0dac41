// Detects different arguments of one broadcast on its ranks, without help of the data: a root of a
// large broadcast and its members would wait for each other.
//
//   root that has waited for kTimeLimit      CALLED(unit, bytes) to all
//   member with a different call of the unit MISTAKE(unit, reason) to all: every rank's call ends
//                                            in an error
//
// A member that has not come to the unit keeps CALLED until it does. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "collectives/core/agreement.h"

namespace cepheus::coll {

struct CallAtHand {
  std::uint64_t unit;
  int root;             // member
  std::uint64_t bytes;  // of the whole broadcast
};

class CallCheck {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kTimeLimit{1000};

  struct Mistake {
    enum class Kind : std::uint8_t {
      kRoot,     // `from` calls with itself as the root
      kCount,    // the root `from` passes `bytes`
      kReported  // `from` has found it, see `reason`
    };
    Kind kind;
    int from;
    std::uint64_t bytes;
    std::string reason;
  };

  // Root of a large broadcast that waits for its members: true once a unit, when CALLED is due.
  bool is_due(const CallAtHand& own, Time now);
  void receive(int from, const ControlMessage& message);
  // The known mistake in the caller's own call.
  std::optional<Mistake> look(const CallAtHand& own) const;

 private:
  struct Noted {
    int from;
    ControlMessage message;
  };
  std::uint64_t unit_ = kNoUnit;  // that this root waits in
  Time since_;
  bool called_ = false;
  std::optional<Noted> noted_call_, noted_mistake_;
};

}  // namespace cepheus::coll
