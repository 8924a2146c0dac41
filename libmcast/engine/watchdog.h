// Detects that no send of a group has completed for too long. RC's own retries end too, but later
// than users wait.
//
// Time counts only while the process looks (attention.h). Pure: time comes in as an argument.
#pragma once

#include <cstdint>

#include "libmcast/engine/attention.h"

namespace cepheus::mcast {

class Watchdog {
 public:
  explicit Watchdog(wire::Duration limit) : limit_(limit) {}

  // Call it after completions have been taken in. `completed` counts the group's completed sends,
  // `waiting`: some are not complete. True: nothing has completed for the limit.
  bool look(wire::Instant now, std::uint64_t completed, bool waiting) {
    const wire::Duration passed = attention_.look(now);
    idle_ = !waiting || completed != completed_ ? wire::Duration(0) : idle_ + passed;
    completed_ = completed;
    return idle_ >= limit_;
  }
  // The lagging members are alive: the time starts again.
  void reset() { idle_ = wire::Duration(0); }
  wire::Duration limit() const { return limit_; }

 private:
  const wire::Duration limit_;
  Attention attention_;
  wire::Duration idle_{0};
  std::uint64_t completed_ = 0;
};

}  // namespace cepheus::mcast
