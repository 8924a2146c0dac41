// The time that drivers pass to engines. No engine includes this (tools/checks/layer_test.py).
#pragma once

#include <chrono>

#include "wire/types.h"

namespace cepheus::wire {

// CLOCK_MONOTONIC.
inline Instant monotonic_now() {
  return Instant(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace cepheus::wire
