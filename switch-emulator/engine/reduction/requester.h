// The units that one path is sent: results to a child, or partial results to the parent. Each is kept
// until it is acknowledged, and repeated without a limit.
//
//      acked()          next()           newest()
//   ......|................|................|......
//    not    sent, and kept   sent earlier, and
//    kept                    to be repeated
//
// After a NAK, a pause or a time-out everything from acked() on is sent again (go-back-N). Until all
// that had been sent is acknowledged, fewer units are under way: half as many after each of these
// events, one more for each acknowledged unit. So a hostile path that requests the same units again
// and again gets few more packets than it sends, and disorder causes few repeats. Time-outs
// follow from measured round trips and double up to kLongestWait. The wait stays doubled until a
// round trip has been measured (Karn's algorithm): answers that have become slower come behind
// repeats, which measure nothing.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "switch-emulator/engine/group/round_trip.h"
#include "switch-emulator/engine/reduction/unit.h"
#include "wire/times.h"
#include "wire/types.h"

namespace cepheus::fabric {

class Requester {
 public:
  // A NIC's own longest wait (docs/protocol.md, "Timers of the hosts").
  static constexpr wire::Duration kLongestWait = wire::times::kSourceRepeats;
  // Until a round trip is known.
  static constexpr wire::Duration kFirstWait = std::chrono::milliseconds(32);

  Unit acked() const { return acked_; }    // the path has all units below
  Unit next() const { return next_; }      // to be sent next
  Unit newest() const { return newest_; }  // all below have been sent at least once
  bool is_paused() const { return paused_until_.has_value(); }
  bool is_idle() const { return acked_ == newest_; }
  // A loss has left few units that may be under way.
  bool is_recovering() const { return acked_ < recovered_; }
  // Of the units below `known`, those below this one may be sent now.
  Unit limit(Unit known) const {
    return is_recovering() ? std::min(known, acked_ + allowed_) : known;
  }

  // Unit next() is sent. Precondition: no pause. True: it has been sent before.
  bool on_sent(wire::Instant now);

  enum class Answer : std::uint8_t {
    kNews,
    kStale,   // it acknowledges no more than is known
    kUnsent,  // ... units that have not been sent
  };
  // An answer that acknowledges all units below `end`.
  Answer on_answer(wire::Instant now, std::int64_t end);
  // Another packet of the path shows that it has all below `end`. True: that is news.
  bool on_implied(wire::Instant now, Unit end);
  // The path requests acked() by NAK: next() is acked() now. False: acked() has been sent again a
  // round trip ago at most. Some devices send a NAK for each packet behind a missing one.
  bool on_nak(wire::Instant now, wire::Duration floor);
  // The path is not ready for acked(). During a pause that is no further event: nothing has been
  // sent since. The last answer has the time.
  void on_pause(wire::Instant until) {
    if (!is_paused()) slow_down();
    go_back();
    paused_until_ = until;
  }

  // When on_due() has to be called; kNever: nothing is under way. `stood`: the end of the link's
  // last pause.
  // Doubled waits end at `longest`.
  wire::Instant due(wire::Duration floor, wire::Instant stood = {},
                    wire::Duration longest = kLongestWait) const;
  // The pause has ended, or the answer is overdue: next() is acked() now.
  void on_due(wire::Instant now);
  // Time-outs since the last packet of this path.
  int silent_repeats() const { return silent_; }
  void on_life() { silent_ = 0; }
  void guess(wire::Duration most) { trip_.guess(most); }

  // For simulation. Precondition: is_idle().
  void jump(Unit units);

 private:
  static constexpr std::uint8_t kMostDoublings = 16;
  static constexpr std::uint8_t kKeptDoublings = 6;

  struct Sample {
    Unit unit;
    wire::Instant at;
  };
  void go_back() {
    next_ = acked_;
    sample_.reset();
  }
  void slow_down();
  void advance(wire::Instant now, Unit end);
  wire::Duration first_wait(wire::Duration floor) const;

  Unit acked_ = 0, next_ = 0, newest_ = 0;
  // Until acked() is `recovered_`, at most `allowed_` units are under way.
  Unit recovered_ = 0, allowed_ = 0;
  wire::Instant last_{};     // when acked() was sent, or became acked()
  Unit repeated_ = kNoUnit;  // the first one of the last repeats, and their time
  wire::Instant repeated_at_{};
  std::optional<wire::Instant> paused_until_;
  std::optional<Sample> sample_;  // a unit that has been sent once (Karn's algorithm)
  RoundTrip trip_;
  std::uint8_t doublings_ = 0, silent_ = 0;
};

}  // namespace cepheus::fabric
