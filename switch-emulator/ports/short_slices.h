// Asks the kernel to run the calling thread soon after it wakes, for short times, even beside
// programs that compute: a thread that moves packets sleeps until there are some, then needs a core
// for microseconds.
//
// EEVDF (Linux 6.6 on) lets the running thread finish its slice, 3 ms on a machine of two cores,
// before a woken one gets the core, unless the latter has requested shorter slices (since 6.12:
// sched_setattr(2), sched_runtime of SCHED_OTHER). Needs no privilege, and takes no larger share of
// the core. Older kernels ignore it.
#pragma once

namespace cepheus::fabric {

// False: its slices are as long as others'.
void request_short_slices(bool wanted = true);

}  // namespace cepheus::fabric
