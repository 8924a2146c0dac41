// When the feedback of a sender group is overdue: the retransmission timer of RFC 6298, kept by the
// sender's switch, whose round trips are far shorter than what NICs wait (docs/protocol.md, "Sender
// groups").
#pragma once

#include <algorithm>
#include <optional>

#include "wire/types.h"

namespace cepheus::fabric {

class RepeatTimer {
 public:
  // Data or feedback of the group goes by: it is not quiet. Later than now: so long nothing is due.
  void on_packet(wire::Instant at) { last_ = std::max(last_, at); }
  // From a packet to the word that all have got it, or of a repeat, that one has who lacked it.
  void add_round_trip(wire::Duration d) {
    if (!mean_) {
      mean_ = d;
      deviation_ = d / 2;
      return;
    }
    const wire::Duration off = d > *mean_ ? d - *mean_ : *mean_ - d;
    deviation_ += (off - deviation_) / 4;
    *mean_ += (d - *mean_) / 8;
  }
  // When to ask again for `first`, if all stays quiet. Never, before a round trip is known, and once
  // the sender was asked for it kMost times: the rest is its own timer's.
  wire::Instant deadline(wire::Psn first) const {
    const int asked = asked_for(first);
    if (!mean_ || asked == kMost) return wire::kNever;
    const wire::Duration wait = std::max<wire::Duration>(*mean_ + 4 * deviation_, 2 * *mean_);
    return last_ + wait * (1 << asked);
  }
  bool has_asked(wire::Psn first) const { return asked_for(first) > 0; }
  void on_asked(wire::Instant now, wire::Psn first) {
    times_ = asked_for(first) + 1;
    first_ = first;
    last_ = now;
  }

 private:
  static constexpr int kMost = 4;
  int asked_for(wire::Psn first) const { return first == first_ ? times_ : 0; }

  std::optional<wire::Duration> mean_;
  wire::Duration deviation_{0};
  wire::Instant last_{};
  wire::Psn first_;  // what was asked for last, so often
  int times_ = 0;
};

}  // namespace cepheus::fabric
