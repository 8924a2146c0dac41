// How long to look for work before sleeping: adaptive waiting on a machine with more processes than
// cores.
//
// Looking again saves a wake-up (some microseconds, more in a virtual machine) if work comes soon
// and those who want the core want it for moments only: programs that poll as we do. That is seen
// from how long a yield takes. To a program that computes it costs the rest of a time slice, some
// milliseconds, where a sleeper would be woken as soon as there is work; so one slow yield is
// enough to give yielding up for a while. No I/O:
// the caller yields and tells the time.
#pragma once

#include "wire/types.h"

namespace cepheus::live {

class IdlePolicy {
 public:
  explicit IdlePolicy(wire::Duration budget) : budget_(budget) {}

  // `bulk_frames`: how many of long messages it has taken since this was said last.
  void worked(wire::Instant now, std::uint64_t bulk_frames) {
    last_work_ = now;
    burst_ += bulk_frames;
    if (burst_ >= kBulk) bulk_until_ = now + kBulkLasts;
  }
  // A yield takes long: whatever is waited for, sleep for it.
  bool is_contended(wire::Instant now) const { return now < contended_until_; }
  // Nothing was found at `now`: sleep, or yield and look again?
  bool should_sleep(wire::Instant now) {
    burst_ = 0;
    return is_contended(now) || now < bulk_until_ || now - last_work_ >= budget_;
  }
  // A yield began and ended then.
  void yielded(wire::Instant began, wire::Instant ended) {
    if (ended - began > kQuickYield) contended_until_ = ended + kContentionLasts;
    computing_ = ended - began > kPollersYield;
  }
  // The last yield went to a program that computes.
  bool sees_computing() const { return computing_; }

 private:
  static constexpr wire::Duration kQuickYield = std::chrono::microseconds(200);
  // Programs that poll as we do never keep a core for so long.
  static constexpr wire::Duration kPollersYield = std::chrono::milliseconds(1);
  static constexpr wire::Duration kContentionLasts = std::chrono::milliseconds(20);

  // Hosts that have sent this many of them in a row go on while the switch sleeps, and fill a batch.
  static constexpr std::uint64_t kBulk = 96;
  static constexpr wire::Duration kBulkLasts = std::chrono::milliseconds(1);

  wire::Duration budget_;
  wire::Instant last_work_{};
  wire::Instant contended_until_{};
  std::uint64_t burst_ = 0;
  wire::Instant bulk_until_{};
  bool computing_ = false;
};

}  // namespace cepheus::live
