// The times at which a member that waits for data asks about its group, and the time without an
// answer after which it gives up. A receiver sends nothing, so its own NIC reports no failure.
// Without questions it would wait for ever for a dead leader, or behind a dead link.
//
// The member asks after Pace::first without data, then more and more rarely, so that idle groups
// cost little. While no answer comes, it asks after each Pace::again. Members that became idle at
// one moment ask at different moments: each has an offset of its own. Time counts only while the
// process looks (attention.h). Pure: time comes in as an argument.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libmcast/engine/attention.h"
#include "wire/times.h"

namespace cepheus::mcast {

class Presence {
 public:
  enum class Step : std::uint8_t { kNone, kRequest, kGiveUp };

  struct Pace {
    wire::Duration first = wire::times::kReceiverRequests;
    wire::Duration last = wire::times::kReceiverRequestsLast;  // the longest, while it is answered
    wire::Duration again = wire::times::kReceiverRequestsAgain;
  };

  // `limit`: how long a question may go unanswered. `place`: any number, best different on all
  // members.
  Presence(wire::Duration limit, std::uint32_t place, const Pace& pace)
      : limit_(limit), pace_(pace), spread_(static_cast<int>(place % kPlaces)) {
    begin();
  }

  // Call it after all that has arrived was taken in. `received` counts the group's messages,
  // `waiting`: the member waits for a further one.
  Step look(wire::Instant now, std::uint64_t received, bool waiting) {
    const wire::Duration passed = attention_.look(now);
    if (!waiting || received != received_) {
      received_ = received;
      interval_ = pace_.first;
      begin();
      return Step::kNone;
    }
    idle_ += passed;
    if (requested_) unanswered_ += passed;
    if (unanswered_ >= limit_) return Step::kGiveUp;
    if (idle_ < next_) return Step::kNone;
    requested_ = true;
    next_ = idle_ + pace_.again;
    return Step::kRequest;
  }
  // The leader, or the sender, has answered.
  void on_answer() {
    if (requested_) interval_ = std::min(2 * interval_, pace_.last);
    begin();
  }
  wire::Duration limit() const { return limit_; }

 private:
  static constexpr int kPlaces = 16;

  void begin() {
    requested_ = false;
    unanswered_ = idle_ = wire::Duration(0);
    next_ = interval_ - interval_ * spread_ / (4 * kPlaces);  // up to a quarter earlier
  }

  const wire::Duration limit_;
  const Pace pace_;
  const int spread_;
  Attention attention_;
  wire::Duration interval_ = pace_.first;
  wire::Duration idle_{0}, next_{0}, unanswered_{0};
  std::uint64_t received_ = 0;
  bool requested_ = false;
};

}  // namespace cepheus::mcast
