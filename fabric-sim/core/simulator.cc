#include "fabric-sim/core/simulator.h"

#include <algorithm>

namespace cepheus::sim {

void Simulator::schedule(Instant at, Actor& actor, std::uint64_t what) {
  heap_.push_back({std::max(at, now_), next_number_++, &actor, what});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

Simulator::End Simulator::run(Instant until) {
  while (!stopped_) {
    if (heap_.empty()) {
      if (until != wire::kNever) now_ = std::max(now_, until);
      return End::kIdle;
    }
    if (heap_.front().at > until) {
      now_ = until;
      return End::kTime;
    }
    if (events_ == budget_) return End::kBudget;
    ++events_;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    now_ = event.at;
    event.actor->on_event(now_, event.what);
  }
  return End::kStopped;
}

}  // namespace cepheus::sim
