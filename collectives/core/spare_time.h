// How long a rank may sleep while a broadcast that it waits for is under way. Pure.
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

  // Of `bytes` that have been on their way for `elapsed`. 0: not yet; once it has taken longer than
  // on such a fabric, the processor is of more use to others.
  static Duration of(std::size_t bytes, Duration elapsed) {
    const Duration quick(static_cast<std::int64_t>(bytes) * 1000 / kFastMegabytesPerSecond);
    return elapsed < std::max(quick, kLatency) ? Duration(0) : std::min(kSleep, elapsed / kParts);
  }
};

}  // namespace cepheus::coll
