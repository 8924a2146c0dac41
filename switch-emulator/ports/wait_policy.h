// How a thread waits for packets where processes are more than cores: one rule for the switch, for
// programs that poll and for the threads of NICs.
//
// A thread that finds nothing looks again, and offers its core now and then. To sleep and be woken
// takes longer; it is right
// - in the middle of a long message: the next packets come as a batch, and one wake-up serves them
//   all;
// - where an offered core was taken for long. Programs that poll as we do give it back within
//   microseconds, so it went to one that computes. A scheduler lets a woken process run sooner than
//   one that gave way;
// - once looking has cost as much as sleeping does here (processor.h).
//
// Pure: the caller looks, yields, sleeps and tells the time.
#pragma once

#include "wire/types.h"

namespace cepheus::fabric {

class WaitPolicy {
 public:
  // What to do after a look that found nothing. kSleepForBatch: packets of a message that goes on
  // need not end the sleep one by one.
  enum class Step : std::uint8_t { kLook, kYield, kSleep, kSleepForBatch };

  // How long a thread may sleep that has other things to look at. kForBatch: in the middle of a long
  // message, where the next batch ends its sleep.
  static constexpr wire::Duration kForBatch = std::chrono::milliseconds(1);
  static constexpr wire::Duration kForFrame = std::chrono::microseconds(200);
  // Where cores are wanted by programs that compute, each wake-up costs one of them a switch of
  // context: packets that come within this time share one.
  static constexpr wire::Duration kGather = std::chrono::microseconds(200);

  // `looks_for`: how long to look before sleeping; Duration::max(): only the other reasons count;
  // 0: sleep after each look that finds nothing. The core is offered after `looks_per_yield`.
  explicit WaitPolicy(wire::Duration looks_for, unsigned looks_per_yield = 16)
      : looks_for_(looks_for), looks_per_yield_(looks_per_yield) {}

  // A look found packets, and has dealt with them at `now`.
  void found(wire::Instant now) {
    found_ = now;
    looks_ = 0;
    sleeps_ = 0;
  }
  // A look at `now` found none. `amid_message`: of a long one, see above.
  Step found_nothing(wire::Instant now, bool amid_message) {
    if (amid_message && sleeps_ < kSleepsForBatch) {
      ++sleeps_;
      return Step::kSleepForBatch;
    }
    if (looks_for_ == wire::Duration::zero()) return Step::kSleep;
    if (++looks_ % looks_per_yield_ != 0) return Step::kLook;
    // The first offer comes before the first sleep: it shows whether others want the core.
    const bool has_looked = looks_ > looks_per_yield_ && now - found_ >= looks_for_;
    return has_looked || is_contended(now) ? Step::kSleep : Step::kYield;
  }
  // The core was offered, and came back.
  void yielded(wire::Instant began, wire::Instant ended) {
    sees_computing_ = ended - began > kSlowYield;
    if (sees_computing_) contended_until_ = ended + kContentionLasts;
  }
  // The last offer went to a program that computes. Where that is so, cores are wanted for a while.
  bool sees_computing() const { return sees_computing_; }
  bool is_contended(wire::Instant now) const { return now < contended_until_; }

 private:
  // A batch that has not come then is not waited for: the thread may be needed for something else.
  static constexpr unsigned kSleepsForBatch = 5;
  static constexpr wire::Duration kSlowYield = std::chrono::microseconds(500);
  static constexpr wire::Duration kContentionLasts = std::chrono::milliseconds(20);

  const wire::Duration looks_for_;
  const unsigned looks_per_yield_;
  wire::Instant found_{};
  wire::Instant contended_until_{};
  bool sees_computing_ = false;
  unsigned looks_ = 0, sleeps_ = 0;  // since packets were found last
};

}  // namespace cepheus::fabric
