// Mean and deviation as for TCP (RFC 6298), in 32 bits of nanoseconds: samples count 1/8 and 1/4,
// and are at most 1 s. A guess, such as the time of the registration, holds until the first
// measurement.
#include "switch-emulator/engine/group/round_trip.h"

#include <chrono>

namespace cepheus::fabric {

using wire::Duration;

void RoundTrip::add(Duration measured) {
  constexpr std::int64_t kMost = 1'000'000'000;  // so that sums of a few fit into 32 bits
  const auto sample = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(std::chrono::nanoseconds(measured).count(), 1, kMost));
  if (!is_known() || is_guess_) {
    mean_ns_ = sample;
    deviation_ns_ = sample / 2;
    is_guess_ = false;
  } else {
    const std::uint32_t error = std::max(mean_ns_, sample) - std::min(mean_ns_, sample);
    deviation_ns_ = deviation_ns_ - deviation_ns_ / 4 + error / 4;
    mean_ns_ = mean_ns_ - mean_ns_ / 8 + sample / 8;
    mean_ns_ = std::max(mean_ns_, 1u);
  }
  doublings_ = 0;
}

void RoundTrip::guess(Duration most) {
  if (is_known() && (!is_guess_ || most >= std::chrono::nanoseconds(mean_ns_))) return;
  const std::uint8_t doublings = doublings_;
  add(most);
  doublings_ = doublings;
  is_guess_ = true;
}

Duration RoundTrip::first_wait(Duration floor) const {
  const auto spread = std::chrono::nanoseconds(std::int64_t{4} * deviation_ns_);
  return std::chrono::nanoseconds(std::int64_t{2} * mean_ns_) + std::max<Duration>(floor, spread);
}

Duration RoundTrip::wait(Duration floor) const { return first_wait(floor) * (1 << doublings_); }

}  // namespace cepheus::fabric
