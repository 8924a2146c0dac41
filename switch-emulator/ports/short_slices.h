// Asks the kernel to let the calling thread run soon after it wakes, for short times, also beside
// programs that compute: one that moves packets sleeps until there are some, then needs a core for
// microseconds.
//
// EEVDF (Linux 6.6 on) lets what runs finish its slice, 3 ms on a machine of two cores, before one
// that woke gets the core, unless the latter has asked for shorter slices (since 6.12:
// sched_setattr(2), sched_runtime of SCHED_OTHER). Needs no privilege, and takes no larger share of
// the core. Older kernels ignore it.
#pragma once

namespace cepheus::fabric {

// False: as long as others'.
void ask_for_short_slices(bool wanted = true);

}  // namespace cepheus::fabric
