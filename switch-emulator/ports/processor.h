// The core that a thread runs on: how it is offered to others, and what it costs to sleep instead.
#pragma once

#include "switch-emulator/ports/wait_policy.h"

namespace cepheus::fabric {

// The kernel wakes threads up to 50 us late to save energy; packets are timed more finely than that.
// As long as this lives, the thread that made it is woken in time.
class FineTimers {
 public:
  FineTimers();
  ~FineTimers();
  FineTimers(const FineTimers&) = delete;
  FineTimers& operator=(const FineTimers&) = delete;

 private:
  int before_;
};

// sched_yield(2); `policy` learns how long it took.
void offer_core(WaitPolicy& policy);

// How late a sleep ends on this machine: measured once a process, in two milliseconds. From 5 to
// 60 us, however busy the machine is.
wire::Duration cost_of_sleeping();

}  // namespace cepheus::fabric
