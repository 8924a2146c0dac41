// Descriptors whose reads must not block.
#pragma once

#include <fcntl.h>

namespace cepheus::wire {

// False: errno has the reason.
inline bool set_nonblocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace cepheus::wire
