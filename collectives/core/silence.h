// The memory that no switch has answered this process lately. A registration waits for a second or so
// before it gives such a fabric up, and each communicator has registrations of its own. So the first
// one waits for all of them: until a time, which doubles with each further one, no other begins. Pure.
#pragma once

#include <string>
#include <utility>

#include "collectives/core/backoff.h"

namespace cepheus::coll {

class Silence {
 public:
  using Duration = Backoff::Duration;

  // No switch has answered a registration from `began` to `now`. One that began before the end of
  // another, in another communicator, says nothing new.
  void note(Duration began, Duration now, std::string reason) {
    if (is_known() && began < noted_) return;
    backoff_.ended(now);
    noted_ = now;
    reason_ = std::move(reason);
  }
  // A switch has answered.
  void end(Duration now) {
    backoff_.began(now);
    reason_.clear();
  }
  // Registrations shall not begin at `now`, for reason().
  bool holds(Duration now) const { return is_known() && now < noted_ + backoff_.interval(); }
  const std::string& reason() const { return reason_; }

 private:
  bool is_known() const { return !reason_.empty(); }

  Backoff backoff_;
  Duration noted_{0};
  std::string reason_;
};

}  // namespace cepheus::coll
