// Custody of the units that come by one path: contributions and partial results of a child, or
// results of the parent. The switch takes them in order, stores them, and then acknowledges them.
//
//                 unit < next()                      repeated: acknowledged again, at once
//     a packet -> unit = next()  -> stored: take()   acknowledged later (owed())
//                 unit > next()                      one was lost: one NAK for next()
#pragma once

#include <cstdint>

#include "switch-emulator/engine/reduction/unit.h"

namespace cepheus::fabric {

class Responder {
 public:
  Unit next() const { return next_; }
  // Unit next() has been stored.
  void take() { ++next_; }
  // Stored units that the path does not know to be stored.
  Unit owed() const { return next_ - acked_; }
  // An acknowledgement has been sent, or a result, which implies it.
  void on_acknowledged() { acked_ = next_; }
  // A unit behind next() has come. True: next() is requested by NAK, for the first time.
  bool take_gap() {
    if (requested_ == next_) return false;
    requested_ = next_;
    return true;
  }
  // next() can't be stored yet, and is answered by RNR NAK. A NAK for a packet behind it would end
  // the pause.
  void on_refused() { requested_ = next_; }

  // For simulation.
  void jump(Unit units) {
    next_ += units;
    acked_ += units;
  }

 private:
  Unit next_ = 0, acked_ = 0;
  Unit requested_ = kNoUnit;
};

}  // namespace cepheus::fabric
