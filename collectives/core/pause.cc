// Bounds: a pause has at most kMost calls. The plans in it double up to kCheckTime of calls. There
// is no clock and no random number.
#include "collectives/core/pause.h"

#include <algorithm>
#include <utility>

namespace cepheus::coll {

void Pause::begin(const WayTimes& times, Way way, std::uint32_t samples, double more) {
  const double own = static_cast<double>(times[way]),
               sampled = static_cast<double>(times[other(way)]);
  const double longer = own > 0 ? std::max(1.0, sampled / own) : 1.0;
  const double wanted = std::max(samples, std::exchange(spent_, 0)) * longer / share_;
  left_ = static_cast<std::uint32_t>(
      std::min<double>(more + std::clamp<double>(wanted, run_, kMost), kMost));
  check_ = run_;
}

Plan Pause::next(const WayTimes& times, Way way, std::uint32_t samples) {
  const std::int64_t own = times[way];
  const bool is_near = own == Times::kNone || left_ <= check_ + run_;
  if (is_near) return {way, std::exchange(left_, 0) + 1, samples};
  left_ -= check_;
  const Plan plan{way, check_, 0};
  const std::int64_t most = std::clamp<std::int64_t>(kCheckTime.count() / own, run_, kMost);
  check_ = static_cast<std::uint32_t>(std::min<std::int64_t>(2 * std::int64_t{check_}, most));
  return plan;
}

}  // namespace cepheus::coll
