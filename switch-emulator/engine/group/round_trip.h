// How long answers take: estimates, from which follows when feedback is overdue (docs/protocol.md,
// "Overdue feedback").
#pragma once

#include <algorithm>
#include <cstdint>

#include "wire/types.h"

namespace cepheus::fabric {

// The round trips of one path, smoothed as in RFC 6298, section 2.
class RoundTrip {
 public:
  bool is_known() const { return mean_ns_ > 0; }
  // The packet was sent once, so the answer is to that packet (Karn's algorithm).
  void add(wire::Duration measured);
  // At least as long as a round trip. The shortest counts until the first measurement.
  void guess(wire::Duration most);
  // Feedback was overdue: wait twice as long, until an acknowledgement moves.
  void back_off() {
    if (doublings_ < kMostDoublings) ++doublings_;
  }
  void end_back_off() { doublings_ = 0; }
  // Silence after which feedback is overdue. RFC 6298 takes the mean once. A switch takes it twice:
  // its wait then exceeds that of a switch below by more than the time between them, so the lower
  // switch requests first.
  wire::Duration wait(wire::Duration floor) const;
  wire::Duration first_wait(wire::Duration floor) const;  // without the doublings

 private:
  static constexpr std::uint8_t kMostDoublings = 6;

  std::uint32_t mean_ns_ = 0, deviation_ns_ = 0;
  std::uint8_t doublings_ = 0;
  bool is_guess_ = false;
};

// The longest recent round trip of a sender group's receivers. RFC 6298's mean and deviation are too
// short there: a group that seldom sends meets queues that none of its few packets has met, and an
// unnecessary repeat makes these longer.
class LongestTrip {
 public:
  bool is_known() const { return known_ > 0; }
  void add(wire::Duration measured) {
    longest_ = std::max(measured, longest_ - (longest_ - measured) / kEnough);
    known_ = std::min(known_ + 1, kEnough);
  }
  // Silence after which feedback is overdue: three times as long, and longer while few are known.
  wire::Duration wait() const { return 2 * longest_ + kEnough * longest_ / known_; }
  // In a hardware table: the time, and the number of samples.
  static constexpr std::size_t kBytes = 3 + 1;

 private:
  static constexpr int kEnough = 32;
  wire::Duration longest_{0};  // decays by 1/kEnough of the difference with each shorter one
  int known_ = 0;              // number of round trips, at most kEnough
};

}  // namespace cepheus::fabric
