// The time that live drivers pass to engines: CLOCK_MONOTONIC.
#pragma once

#include <ctime>

#include "wire/types.h"

namespace cepheus::live {

inline wire::Instant monotonic_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return wire::Instant(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace cepheus::live
