// The time that drivers pass to engines. No engine includes this (tools/checks/layer_test.py).
#pragma once

#include <time.h>

#include <chrono>

#include "wire/types.h"

namespace cepheus::wire {

// CLOCK_MONOTONIC.
inline Instant monotonic_now() {
  return Instant(std::chrono::steady_clock::now().time_since_epoch());
}

// The same clock, up to some milliseconds late: it costs a few nanoseconds on every machine.
inline Instant coarse_now() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &at);
  return Instant(std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec));
}

}  // namespace cepheus::wire
