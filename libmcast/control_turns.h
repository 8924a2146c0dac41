// The times at which mcast_progress() serves the control channel, device events and stalls. That
// costs system calls, so programs that poll pay for one call in 64. A program that calls every 10
// ms would then count little of its time (engine/attention.h). So a turn also comes after a fixed
// time. Pure: time comes in as an argument.
#pragma once

#include "libmcast/engine/attention.h"
#include "wire/types.h"

namespace cepheus::mcast {

class ControlTurns {
 public:
  static constexpr unsigned kCalls = 64;
  static constexpr wire::Duration kLongest = Attention::kGlance / 2;

  // True if this call has a turn.
  bool take(wire::Instant now) {
    if (++calls_ < kCalls && now - last_ < kLongest) return false;
    calls_ = 0;
    last_ = now;
    return true;
  }
  // The next call has one.
  void hasten() { calls_ = kCalls; }

 private:
  unsigned calls_ = 0;
  wire::Instant last_{};
};

}  // namespace cepheus::mcast
