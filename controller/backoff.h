// The times at which a datagram that may have been lost is sent again, and the list of all repeated
// datagrams of hosts (docs/protocol.md, "Registration", "Timers of the hosts"). Pure: time comes in
// as an argument.
#pragma once

#include <algorithm>
#include <limits>

#include "wire/times.h"

namespace cepheus::mrp {

namespace times = wire::times;
using wire::Duration;
using wire::Instant;

// A transmission is repeated after `first`, then each time after twice as long, up to `longest`.
struct Pace {
  static constexpr unsigned kUntilAnswered = std::numeric_limits<unsigned>::max();

  Duration first;
  Duration longest;
  unsigned transmissions = kUntilAnswered;  // the first one among them
};

// The transmissions of one datagram.
class Backoff {
 public:
  Backoff() = default;  // there are none
  // The first one is due at `at`.
  Backoff(Pace pace, Instant at) : pace_(pace), interval_(pace.first), next_(at) {}

  bool is_due(Instant now) const { return next_ <= now; }
  // After each transmission.
  void sent(Instant now) {
    ++sent_;
    next_ = now + interval_;
    interval_ = std::min(2 * interval_, pace_.longest);
  }
  bool is_first() const { return sent_ == 0; }
  // At most this number of repeats. Then the caller gives up.
  bool is_used_up() const { return sent_ >= pace_.transmissions; }
  void stop() { next_ = wire::kNever; }
  Instant deadline() const { return next_; }

 private:
  Pace pace_{};
  Duration interval_{0};
  Instant next_ = wire::kNever;
  unsigned sent_ = 0;
};

// All that hosts repeat. A simulation has paces of its own.
struct Repeats {
  // REGISTER, CONNECT and ACTIVATE, or a new sender group's INSTALL, until all have answered.
  Pace set_up{times::kFirstRetry, times::kLongestRetry};
  // REFRESH of an active group.
  Pace refresh{times::kRefresh, times::kRefresh};
  // INSTALL of an active sender group, which switches learn it by.
  Pace install{times::kFirstRetry, times::kInstallAgain};
  // PUBLISH, until the switch confirms it.
  Pace publish{times::kFirstRetry, times::kLongestRetry};
  // EVICT, until the switches of the evicted members confirm it.
  Pace evict{times::kFirstRetry, times::kLongestRetry, 20};
  // REJECT of a member that failed, until the leader answers.
  Pace leave{times::kLeaveRetry, times::kLeaveRetry, 5};
  // UNREGISTER, GIVE_UP and REMOVE, until all have answered: members that are gone never do.
  Pace unregister{times::kFirstRetry, times::kLongestRetry, 3};
};

}  // namespace cepheus::mrp
