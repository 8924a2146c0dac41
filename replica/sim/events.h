// Virtual time: events in the order of time, then of scheduling.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>

#include "replica/engine/volume_types.h"

namespace cepheus::replica::sim {

class Events {
 public:
  Instant now() const { return now_; }
  void at(Instant when, std::function<void()> work) {
    queue_.push({when < now_ ? now_ : when, ++count_, std::move(work)});
  }
  void in(Duration delay, std::function<void()> work) { at(now_ + delay, std::move(work)); }
  // False if no event is left, or none before `end`.
  bool step(Instant end) {
    if (queue_.empty() || queue_.top().when > end) {
      now_ = end;
      return false;
    }
    const Event event = queue_.top();
    queue_.pop();
    now_ = event.when;
    ++steps_;
    event.work();
    return true;
  }
  std::uint64_t steps() const { return steps_; }

 private:
  struct Event {
    Instant when;
    std::uint64_t order;
    std::function<void()> work;
    bool operator<(const Event& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  std::priority_queue<Event> queue_;
  Instant now_{};
  std::uint64_t count_ = 0, steps_ = 0;
};

}  // namespace cepheus::replica::sim
