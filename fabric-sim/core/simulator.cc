// The next event is the earlier of two: the front of the near events, and the top of a heap of
// later ones. Each event costs one unit of the budget. An event is copied and removed before its
// actor runs, because the actor may request others.
#include "fabric-sim/core/simulator.h"

namespace cepheus::sim {

void Simulator::push_far(const Event& event) {
  far_.push_back(event);
  std::size_t at = far_.size() - 1;
  while (at > 0) {
    const std::size_t parent = (at - 1) / kWays;
    if (!(event < far_[parent])) break;
    far_[at] = far_[parent];
    at = parent;
  }
  far_[at] = event;
}

void Simulator::pop_far() {
  const Event event = far_.back();
  far_.pop_back();
  const std::size_t size = far_.size();
  if (size == 0) return;
  std::size_t at = 0;
  for (std::size_t first = 1; first < size; first = at * kWays + 1) {
    const std::size_t end = std::min(first + kWays, size);
    std::size_t best = first;
    for (std::size_t child = first + 1; child < end; ++child) {
      if (far_[child] < far_[best]) best = child;
    }
    if (!(far_[best] < event)) break;
    far_[at] = far_[best];
    at = best;
  }
  far_[at] = event;
}

// Is an event left for the instant `at`?
bool Simulator::may_run(Instant at) {
  if (events_ < allowed_) return true;
  const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch());
  allowed_ = budget_ + per_millisecond_ * static_cast<std::uint64_t>(milliseconds.count());
  return events_ < allowed_;
}

Simulator::End Simulator::run(Instant until) {
  while (!stopped_) {
    const Event* const near = near_.front(now_);
    const bool is_far = !far_.empty() && (near == nullptr || far_.front() < *near);
    const Event* const next = is_far ? &far_.front() : near;
    if (next == nullptr) {
      if (until != wire::kNever) now_ = std::max(now_, until);
      return End::kIdle;
    }
    if (next->at > until) {
      now_ = until;
      return End::kTime;
    }
    if (!may_run(next->at)) return End::kBudget;
    ++events_;
    const Event event = *next;
    if (is_far) {
      pop_far();
    } else {
      near_.pop();
    }
    now_ = event.at;
    event.actor->on_event(now_, event.what);
  }
  return End::kStopped;
}

}  // namespace cepheus::sim
