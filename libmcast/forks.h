// Whether this is still the process that made an object, or a child of it.
//
// fork() may come at any moment, also while another thread opens or closes a context. So no lock is
// held across it, and the one handler only counts. (Locks that a handler takes would have to stand
// before the device's own in every order of registration; they don't.)
//
// Beside this count and the thread's last error (failure.h), libmcast has no state outside of
// contexts.
#pragma once

#include <cstdint>

namespace cepheus::mcast {

// Grows by one in each forked child. Objects of another generation belong to a parent.
std::uint64_t current_fork_generation();

}  // namespace cepheus::mcast
