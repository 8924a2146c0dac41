// Virtual time: actors ask to be called at an instant, and are, in order; ties in the order they
// were asked for.
//
// A simulation that goes on without end is a bug that must not look like slowness: every run has an
// event budget, and using it up is a result of its own.
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

// Something that acts at instants it chose. It must outlive the events it asked for. Events are
// never taken back: an actor that changed its mind finds nothing to do.
class Actor {
 public:
  virtual ~Actor() = default;
  virtual void on_event(Instant now, std::uint64_t what) = 0;
};

class Simulator {
 public:
  explicit Simulator(std::uint64_t event_budget) : budget_(event_budget) {}

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
    kTime,     // the next event lies behind `until`; now() == until
    kStopped,  // stop() was called
    kBudget,   // the event budget is used up: livelock
  };
  End run(Instant until = wire::kNever);
  void stop() { stopped_ = true; }

  std::uint64_t events() const { return events_; }
  Trace& trace() { return trace_; }

 private:
  static constexpr std::size_t kWays = 4;  // of the heap: half as deep as with two
  void push_far(const Event& event);
  void pop_far();

  NearEvents near_;
  std::vector<Event> far_;  // a heap, the earliest in front
  Instant now_{};
  std::uint64_t next_number_ = 0;
  std::uint64_t events_ = 0;
  const std::uint64_t budget_;
  bool stopped_ = false;
  Trace trace_;
};

}  // namespace cepheus::sim
