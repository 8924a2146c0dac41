// The time of day of this component. Tests define their own now().
#pragma once

#include <chrono>

namespace cepheus::coll {

struct Clock {
  using time_point = std::chrono::steady_clock::time_point;
  static time_point now();
};

}  // namespace cepheus::coll
