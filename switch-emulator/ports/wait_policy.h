// How a thread waits for packets when there are more processes than cores: one rule for the switch,
// for programs that poll and for the threads of NICs.
//
// A thread that finds nothing looks again, and yields its core now and then: by the time that looks
// take, because one of MPI's library has more to look at than a verbs program. Sleeping takes longer
// because of the wake-up. It is right
// - in the middle of a long message: the next packets come as a batch, and one wake-up serves them
//   all;
// - if a yielded core was taken for long. Programs that poll give it back within microseconds, so
//   it went to one that computes. A scheduler lets a woken process run sooner than one that yielded;
// - once looking has cost as much as sleeping does here (processor.h).
//
// Pure: the caller looks, yields, sleeps and passes the time.
#pragma once

#include <optional>

#include "wire/types.h"

namespace cepheus::fabric {

class WaitPolicy {
 public:
  // What to do after a look that found nothing. kSleepForBatch: packets within a message need not
  // end the sleep one by one.
  enum class Step : std::uint8_t { kLook, kYield, kSleep, kSleepForBatch };

  // Limit of a sleep for a thread with other things to look at. kForBatch: in the middle of a long
  // message, where the next batch ends its sleep.
  static constexpr wire::Duration kForBatch = std::chrono::milliseconds(1);
  static constexpr wire::Duration kForFrame = std::chrono::microseconds(200);
  // If programs that compute want the cores, each wake-up costs one of them a context switch:
  // packets within this time share one.
  static constexpr wire::Duration kGather = std::chrono::microseconds(200);

  // Some yields' time.
  static constexpr wire::Duration kTurn = std::chrono::microseconds(2);
  // A program that looks again later has done other things, and did not look all the time.
  static constexpr wire::Duration kLongestLook = std::chrono::microseconds(50);

  // `looks_for`: how long to look before sleeping; Duration::max(): only the other reasons count;
  // 0: sleep after each look that finds nothing. The core is yielded after looks for `turn`.
  explicit WaitPolicy(wire::Duration looks_for, wire::Duration turn = kTurn)
      : looks_for_(looks_for), turn_(turn) {}

  // A look found packets, and has handled them at `now`.
  void found(wire::Instant now) {
    found_ = now;
    turn_began_.reset();
    has_yielded_ = false;
    sleeps_ = 0;
  }
  // A look at `now` found none. `amid_message`: of a long one, see above.
  Step found_nothing(wire::Instant now, bool amid_message) {
    if (amid_message && sleeps_ < kSleepsForBatch) {
      ++sleeps_;
      return Step::kSleepForBatch;
    }
    if (looks_for_ == wire::Duration::zero()) return Step::kSleep;
    if (!turn_began_ || now - looked_ > kLongestLook) turn_began_ = now;
    looked_ = now;
    if (now - *turn_began_ < turn_) return Step::kLook;
    turn_began_.reset();
    // The first yield comes before the first sleep: it shows whether others want the core.
    const bool has_looked = has_yielded_ && now - found_ >= looks_for_;
    if (has_looked || is_contended(now)) return Step::kSleep;
    has_yielded_ = true;
    return Step::kYield;
  }
  // The core was yielded, and came back.
  void yielded(wire::Instant began, wire::Instant ended) {
    sees_computing_ = ended - began > kSlowYield;
    if (sees_computing_) contended_until_ = ended + kContentionLasts;
  }
  // The last yield went to a program that computes. Then cores are wanted for a while.
  bool sees_computing() const { return sees_computing_; }
  bool is_contended(wire::Instant now) const { return now < contended_until_; }

 private:
  // A batch that is later than this is not awaited: the thread may be needed for other work.
  static constexpr unsigned kSleepsForBatch = 5;
  static constexpr wire::Duration kSlowYield = std::chrono::microseconds(500);
  static constexpr wire::Duration kContentionLasts = std::chrono::milliseconds(20);

  const wire::Duration looks_for_;
  const wire::Duration turn_;
  wire::Instant found_{};
  wire::Instant contended_until_{};
  std::optional<wire::Instant> turn_began_;  // by a look that found nothing
  wire::Instant looked_{};                   // at the last one of them
  bool sees_computing_ = false;
  bool has_yielded_ = false;  // since packets were found last
  unsigned sleeps_ = 0;       // the same
};

}  // namespace cepheus::fabric
