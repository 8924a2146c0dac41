// When the engine's timers run, beside packets that arrive.
//
// Frames that were in the port's ring at a deadline are handled first: an answer that waited there
// because this process was off its core is no loss. Later frames must not defer a time-out or the
// end of an RNR wait, or a stream of packets would do so for ever. Pure: time comes in as an
// argument.
#pragma once

#include <cstddef>

#include "wire/types.h"

namespace cepheus::verbs {

class TimerTurn {
 public:
  // `ring`: how many frames may lie in the port's ring.
  explicit TimerTurn(std::size_t ring) : ring_(ring) {}

  // `taken` frames have just been handled, `drained`: after them the ring was empty. True: timers
  // due at `deadline` may run now.
  bool may_fire(wire::Instant now, wire::Instant deadline, std::size_t taken, bool drained) {
    if (now < deadline) {
      since_due_ = 0;
      return false;
    }
    since_due_ += taken;
    if (!drained && since_due_ < ring_) return false;
    since_due_ = 0;
    return true;
  }

 private:
  const std::size_t ring_;
  std::size_t since_due_ = 0;  // frames handled since a deadline was seen to have passed
};

}  // namespace cepheus::verbs
