// When the feedback of a sender group is overdue: a retransmission timer, kept by the sender's switch,
// whose round trips are far shorter than what NICs wait (docs/protocol.md, "Sender groups").
#pragma once

#include <algorithm>

#include "wire/types.h"

namespace cepheus::fabric {

// After three of the longest round trips of late; after more, while few are known. (RFC 6298's mean and
// deviation are too short: a group that seldom sends meets queues that none of its few packets has met,
// and a repeat that nobody needed makes these longer.)
class RepeatTimer {
 public:
  // Data or feedback of the group goes by: it is not quiet. Later than now: so long nothing is due.
  void on_packet(wire::Instant at) { last_ = std::max(last_, at); }
  // From a packet to the word that all have got it, or of a repeat, that one has who lacked it.
  void add_round_trip(wire::Duration d) {
    longest_ = std::max(d, longest_ - (longest_ - d) / kEnough);
    known_ = std::min(known_ + 1, kEnough);
  }
  // When to ask again for `first`, if all stays quiet. Never, before a round trip is known, and once
  // the sender was asked for it kMost times: the rest is its own timer's.
  wire::Instant deadline(wire::Psn first) const {
    const int asked = asked_for(first);
    if (known_ == 0 || asked == kMost) return wire::kNever;
    return last_ + (2 * longest_ + kEnough * longest_ / known_) * (1 << asked);
  }
  bool has_asked(wire::Psn first) const { return asked_for(first) > 0; }
  void on_asked(wire::Instant now, wire::Psn first) {
    times_ = asked_for(first) + 1;
    first_ = first;
    last_ = now;
  }
  // Of a table of hardware: round trip, how many are known, last packet, what was asked for, how often.
  static constexpr std::size_t kBytes = 3 + 1 + 4 + 3 + 1;

 private:
  static constexpr int kMost = 4;
  static constexpr int kEnough = 32;
  int asked_for(wire::Psn first) const { return first == first_ ? times_ : 0; }

  wire::Duration longest_{0};  // it fades, by a kEnough-th with each that is shorter
  int known_ = 0;              // round trips, kEnough at most
  wire::Instant last_{};
  wire::Psn first_;  // what was asked for last, so often
  int times_ = 0;
};

}  // namespace cepheus::fabric
