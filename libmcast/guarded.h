// What every call of the C face does with mistakes: no exception leaves it, and the text stays for
// mcast_last_error().
#pragma once

#include <exception>
#include <new>

#include "libmcast/failure.h"

namespace cepheus::mcast {

// Runs `body`, which returns a status; whatever it throws becomes one.
template <typename Body>
mcast_status_t guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return set_last_error(MCAST_ERR_NO_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return set_last_error(MCAST_ERR_FABRIC, e.what());
  }
}

inline mcast_status_t invalid(const char* text) { return set_last_error(MCAST_ERR_INVALID, text); }

}  // namespace cepheus::mcast
