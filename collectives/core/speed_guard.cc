#include "collectives/core/speed_guard.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cepheus::coll {

bool SpeedGuard::note(std::size_t bytes, std::chrono::nanoseconds time) {
  if (bytes < kSmallest || time.count() <= 0) return false;
  Class& c = classes_[static_cast<std::size_t>(std::bit_width(bytes) - 1)];
  const double speed = static_cast<double>(bytes) * 1e9 / static_cast<double>(time.count());
  if (c.known < kWarmUp) {
    c.first[static_cast<std::size_t>(c.known++)] = speed;
    if (c.known < kWarmUp) return false;
    auto sorted = c.first;
    std::nth_element(sorted.begin(), sorted.begin() + kWarmUp / 2, sorted.end());
    c.usual = sorted[kWarmUp / 2];
    return false;
  }
  if (speed >= c.usual / 2) {
    c.usual *= std::pow(speed / c.usual, 1.0 / 16);
    c.score = std::max(0, c.score - 2);
    return false;
  }
  if (++c.score < kSlowScore) return false;
  forget();
  return true;
}

double SpeedGuard::usual(std::size_t bytes) const {
  if (bytes < kSmallest) return 0;
  return classes_[static_cast<std::size_t>(std::bit_width(bytes) - 1)].usual;
}

}  // namespace cepheus::coll
