// The calls of a size class from one comparison of its ways to the next one, and the last times of
// both ways. A pause keeps samples to their share of the class's calls, and of their time. Pure.
//
// In a pause the ranks report times of the present way alone, every kCheckTime of calls. The first
// such reports come sooner: after as many calls as a comparison has timed samples, then after twice
// as many each time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "collectives/core/comparison.h"

namespace cepheus::coll {

// In nanoseconds a call; Times::kNone: not known.
class WayTimes {
 public:
  std::int64_t& operator[](Way way) { return ns_[static_cast<std::size_t>(way)]; }
  std::int64_t operator[](Way way) const { return ns_[static_cast<std::size_t>(way)]; }

 private:
  std::array<std::int64_t, 2> ns_{Times::kNone, Times::kNone};
};

class Pause {
 public:
  static constexpr std::chrono::nanoseconds kCheckTime = std::chrono::milliseconds(100);
  static constexpr std::uint32_t kMost = 1'000'000;  // calls

  // `share`: of samples in the long run. `run`: timed samples of a comparison.
  Pause(double share, std::uint32_t run) : share_(share), run_(run) {}

  // A plan with this number of samples is over.
  void spend(std::uint32_t samples) { spent_ += samples; }
  // A pause of the present `way` begins. The next comparison has this number of samples. The pause
  // is `more` calls longer than the samples' share needs.
  void begin(const WayTimes& times, Way way, std::uint32_t samples, double more = 0);
  // Its next plan. The last one has those samples.
  Plan next(const WayTimes& times, Way way, std::uint32_t samples);
  // Calls until the last plan.
  std::uint32_t left() const { return left_; }

 private:
  const double share_;
  const std::uint32_t run_;
  std::uint32_t spent_ = 0;  // samples since the last pause
  std::uint32_t left_ = 0;
  std::uint32_t check_ = 0;  // calls until the ranks report the present way's times
};

}  // namespace cepheus::coll
