// Notes about a path beside its table, used if its member dies or stalls (docs/protocol.md,
// "Members that die or stall").
#pragma once

#include <cstdint>

#include "wire/types.h"

namespace cepheus::fabric {

// Repeats of the packet that a path needs next, since the last feedback of the path.
//
// A path lags if two of them are unanswered and the source still repeats it. A source repeats the
// packets of the slowest, so the others have nothing to answer. Between repeats a source waits at
// most twice as long as before, with one exception: after the last request for overdue feedback it
// waits for its own time-out. If that is longer than `go_on` allows, the path lags again from that
// repeat on.
class Repeats {
 public:
  void note(wire::Instant now) {
    if (seen_ > 0 && now - last_ <= gap_ / 4) return;  // duplicated on its way
    if (seen_ > 0) gap_ = now - last_;
    last_ = now;
    if (seen_ < kEnough) ++seen_;
  }
  void clear() { seen_ = 0, gap_ = {}; }
  bool go_on(wire::Instant now) const { return seen_ == kEnough && now - last_ <= 3 * gap_; }

 private:
  static constexpr std::uint8_t kEnough = 2;
  wire::Instant last_{};
  wire::Duration gap_{0};
  std::uint8_t seen_ = 0;
};

struct Evidence {
  Repeats unanswered;
  std::uint32_t packets = 0;  // feedback packets of this path
  bool was_down = false;      // its port, without feedback since: the program may be another one
  bool is_back = false;       // the port is up again: feedback from now on is new

  // A packet has arrived by this path,
  void on_packet() {
    if (is_back) was_down = is_back = false;
  }
  // ... and it is an answer.
  void on_feedback() {
    ++packets;
    unanswered.clear();
    on_packet();
  }
};

}  // namespace cepheus::fabric
