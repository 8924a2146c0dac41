// How long to look for work before sleeping: adaptive waiting on a machine with more processes than
// cores.
//
// Polling saves a wake-up (some microseconds) if work comes soon and nobody else wants the core.
// Whether somebody does is seen from how long a yield takes: one that returns at once found no
// other process to run. Then polling may go on for `budget` after the last work; else the next
// empty look is the last one.
#pragma once

#include <sched.h>

#include "libmcast/wire/types.h"
#include "switch-emulator/fabric/clock.h"

namespace cepheus::fabric {

class IdlePolicy {
 public:
  explicit IdlePolicy(wire::Duration budget) : budget_(budget) {}

  void worked(wire::Instant now) {
    last_work_ = now;
    contended_ = false;
  }
  // Nothing was found at `now`: sleep, or yield() and look again?
  bool should_sleep(wire::Instant now) const { return contended_ || now - last_work_ >= budget_; }
  void yield(wire::Instant now) {
    sched_yield();
    contended_ = monotonic_now() - now > kQuickYield;
  }

 private:
  // A yield without anyone to yield to takes under a microsecond.
  static constexpr wire::Duration kQuickYield = std::chrono::microseconds(5);

  wire::Duration budget_;
  wire::Instant last_work_{};
  bool contended_ = false;
};

}  // namespace cepheus::fabric
