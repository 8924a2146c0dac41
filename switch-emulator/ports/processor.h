// The core of a thread: how to yield it, and the cost of sleeping instead.
#pragma once

#include "switch-emulator/ports/wait_policy.h"

namespace cepheus::fabric {

// The kernel wakes threads up to 50 us late to save energy; packets are timed more finely than
// that. During this object's lifetime the creating thread is woken in time.
class FineTimers {
 public:
  FineTimers();
  ~FineTimers();
  FineTimers(const FineTimers&) = delete;
  FineTimers& operator=(const FineTimers&) = delete;

 private:
  int before_;
};

// sched_yield(2); `policy` learns its duration.
void offer_core(WaitPolicy& policy);

// How late a sleep ends on this machine: measured once a process, in two milliseconds. From 5 to 60
// us, whatever the load.
wire::Duration cost_of_sleeping();

}  // namespace cepheus::fabric
