// Failures inside libmcast, with the system's own text, and the text of mcast_last_error().
#pragma once

#include <string>
#include <string_view>

#include "libmcast/engine/failure.h"

namespace cepheus::mcast {

// `what`, and the errno's text.
std::string errno_text(std::string_view what, int error);

// The calling thread's last error; never allocates, so that it works when memory has run out.
const char* last_error();
mcast_status_t set_last_error(mcast_status_t status, std::string_view text);
inline mcast_status_t set_last_error(const Failure& failure) {
  return set_last_error(failure.status, failure.text);
}

}  // namespace cepheus::mcast
