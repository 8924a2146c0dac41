// Virtual time: actors request calls at instants, and get them in order; ties in the order of the
// requests.
//
// An endless simulation is a bug that must not look like a slow one: every run has an event budget,
// which may grow with virtual time, and running out of it is a result of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fabric-sim/core/near_events.h"
#include "fabric-sim/core/trace.h"
#include "wire/types.h"

namespace cepheus::sim {

using wire::Duration;
using wire::Instant;

// An object that acts at instants that it requested. It must outlive its requested events. Events
// are never cancelled: an actor that changed its plan does nothing.
class Actor {
 public:
  virtual ~Actor() = default;
  virtual void on_event(Instant now, std::uint64_t what) = 0;
};

class Simulator {
 public:
  // `per_millisecond`: further events for each millisecond of virtual time.
  explicit Simulator(std::uint64_t event_budget, std::uint64_t per_millisecond = 0)
      : budget_(event_budget), per_millisecond_(per_millisecond), allowed_(event_budget) {}

  Instant now() const { return now_; }
  // `at` in the past means now.
  void schedule(Instant at, Actor& actor, std::uint64_t what = 0) {
    const Event event{std::max(at, now_), next_number_++, &actor, what};
    if ((event.at - now_).count() < NearEvents::kReach) {
      near_.push(event);
    } else {
      push_far(event);
    }
  }

  enum class End {
    kIdle,     // no event is left; now() == until, unless that is never
    kTime,     // the next event is after `until`; now() == until
    kStopped,  // stop() was called
    kBudget,   // the event budget is used up: livelock
  };
  End run(Instant until = wire::kNever);
  void stop() { stopped_ = true; }

  std::uint64_t events() const { return events_; }
  Trace& trace() { return trace_; }

 private:
  // Children per node of the heap: half as deep as a binary one.
  static constexpr std::size_t kWays = 4;
  void push_far(const Event& event);
  void pop_far();
  bool may_run(Instant at);

  NearEvents near_;
  std::vector<Event> far_;  // a heap, the earliest first
  Instant now_{};
  std::uint64_t next_number_ = 0;
  std::uint64_t events_ = 0;
  const std::uint64_t budget_, per_millisecond_;
  std::uint64_t allowed_;  // events, as last computed
  bool stopped_ = false;
  Trace trace_;
};

}  // namespace cepheus::sim
