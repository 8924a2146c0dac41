// The unit at which multicast is tried again after it was given up. All ranks must try at the same
// unit. So the rank that decides converts a time into a number of units, at the rate that it has
// observed. The time doubles from kFirst to kLongest with each attempt that did not last. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace cepheus::coll {

class Backoff {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr Duration kFirst = std::chrono::milliseconds(500);
  static constexpr Duration kLongest = std::chrono::seconds(60);
  // A shorter observation says little about the rate: prefer an early attempt.
  static constexpr Duration kShortestSeen = std::chrono::milliseconds(100);
  // Bounds of units_for(). An attempt may cost all ranks a second, so it is rare among their calls even
  // if no call was seen yet, or few. And a program may call seldom after a burst.
  static constexpr std::uint64_t kFewest = 16, kMost = 1'000'000;  // units

  // Multicast serves from here on.
  void began(Duration now) {
    served_since_ = now;
    serving_ = true;
  }
  // Multicast was given up, or an attempt failed.
  void ended(Duration now) {
    const bool lasted = serving_ && now - served_since_ >= 10 * interval_;
    interval_ = interval_ == Duration(0) || lasted ? kFirst : std::min(2 * interval_, kLongest);
    serving_ = false;
  }
  Duration interval() const { return interval_; }

  // Units until the next attempt, where `units` took `time`.
  static std::uint64_t units_for(Duration interval, std::uint64_t units, Duration time) {
    const Duration seen = std::max(time, kShortestSeen);
    const double rate = static_cast<double>(units) / static_cast<double>(seen.count());
    const double wanted = rate * static_cast<double>(interval.count());
    return static_cast<std::uint64_t>(
        std::clamp(wanted, static_cast<double>(kFewest), static_cast<double>(kMost)));
  }

 private:
  Duration interval_{0};
  Duration served_since_{0};
  bool serving_ = false;
};

}  // namespace cepheus::coll
