// Whether a neighbour has asked for silence, and how long we were silent.
#pragma once

#include "wire/types.h"

namespace cepheus::net {

class PauseState {
 public:
  bool is_paused(wire::Instant now) const { return now < until_; }
  // When sending goes on, if nothing more comes.
  wire::Instant until() const { return until_; }
  // `until` not after `now`: it goes on.
  void set(wire::Instant now, wire::Instant until) {
    total_ = time(now);
    since_ = now;
    until_ = until > now ? until : now;
  }
  // Spent in pauses so far.
  wire::Duration time(wire::Instant now) const {
    const wire::Instant end = now < until_ ? now : until_;
    return total_ + (end > since_ ? end - since_ : wire::Duration{0});
  }

 private:
  wire::Instant since_{}, until_{};
  wire::Duration total_{0};
};

}  // namespace cepheus::net
