// True if this process made an object, false in a child of it.
//
// fork() may come at any moment, also while another thread opens or closes a context. So no lock is
// held across it, and the one handler only counts. A handler that takes locks would have to be
// registered before the device's own, which is not always so.
//
// Beside this count and the thread's last error (failure.h), libmcast has no state outside of
// contexts.
#pragma once

#include <cstdint>

namespace cepheus::mcast {

// Grows by one in each forked child. Objects of another generation belong to a parent.
std::uint64_t current_fork_generation();

}  // namespace cepheus::mcast
