// The time for which a stopped group may still hand over its posted work. A device that died may
// never do so. Only the time counts in which this rank looks: between two looks the program may be
// outside MPI, and nothing is handed over.
#pragma once

#include <algorithm>
#include <chrono>

#include "collectives/group/clock.h"

namespace cepheus::coll {

class DrainTime {
 public:
  void begin() { looked_at_ = Clock::now(); }
  // Call it at each look.
  bool is_over() {
    const auto now = Clock::now();
    spent_ += std::min<std::chrono::nanoseconds>(now - looked_at_, kLongestLook);
    looked_at_ = now;
    return spent_ >= kLimit;
  }

 private:
  static constexpr std::chrono::seconds kLimit{1};
  static constexpr std::chrono::milliseconds kLongestLook{10};

  std::chrono::steady_clock::time_point looked_at_;
  std::chrono::nanoseconds spent_{0};
};

}  // namespace cepheus::coll
