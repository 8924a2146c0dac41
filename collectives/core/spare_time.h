// The time for which a rank may sleep while its broadcast is under way. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cepheus::coll {

class SpareTime {
 public:
  using Duration = std::chrono::nanoseconds;
  // At this rate or below, a fabric takes at least two sleeps to fill a NIC's window.
  static constexpr Duration kSleep = std::chrono::microseconds(250);
  static constexpr std::int64_t kFastMegabytesPerSecond = 500;
  // A few bytes take their latency, however fast the links are.
  static constexpr Duration kLatency = std::chrono::microseconds(200);
  // A sleep is at most the time that the broadcast has taken so far, divided by this.
  static constexpr int kParts = 8;

  // For `bytes` that have been under way for `elapsed`. 0: not yet. A broadcast that takes longer
  // than on such a fabric leaves the core to others.
  static Duration of(std::size_t bytes, Duration elapsed) {
    const Duration quick(static_cast<std::int64_t>(bytes) * 1000 / kFastMegabytesPerSecond);
    return elapsed < std::max(quick, kLatency) ? Duration(0) : std::min(kSleep, elapsed / kParts);
  }
};

}  // namespace cepheus::coll
