// Says when sends of a group have been without any progress for too long. RC's own retries end too,
// but later than users wait.
//
// Time counts only while somebody looks: a process that computed, or was stopped, between two looks
// learns nothing about the fabric from that time, so at most kGlance of it counts. Pure: time comes
// in as an argument.
#pragma once

#include <algorithm>
#include <cstdint>

#include "wire/types.h"

namespace cepheus::mcast {

class Watchdog {
 public:
  static constexpr wire::Duration kGlance = std::chrono::milliseconds(100);

  explicit Watchdog(wire::Duration limit) : limit_(limit) {}

  // Call it after completions have been taken in. `completed` counts the group's completed sends,
  // `waiting`: some are not complete. True: nothing has completed for the limit.
  bool look(wire::Instant now, std::uint64_t completed, bool waiting) {
    if (!waiting || completed != completed_ || !looked_) {
      idle_ = wire::Duration(0);
    } else {
      idle_ += std::clamp(now - last_look_, wire::Duration(0), kGlance);
    }
    looked_ = true;
    last_look_ = now;
    completed_ = completed;
    return idle_ >= limit_;
  }
  // Whoever keeps the sends waiting is alive: the time begins anew.
  void calm() { idle_ = wire::Duration(0); }
  wire::Duration limit() const { return limit_; }

 private:
  const wire::Duration limit_;
  wire::Duration idle_{0};
  wire::Instant last_look_{};
  std::uint64_t completed_ = 0;
  bool looked_ = false;
};

}  // namespace cepheus::mcast
