// The memory that no switch has answered this process lately. A registration waits for a second or so
// before it gives such a fabric up, and each communicator has registrations of its own. So the first
// one waits for all of them: until a time, which doubles with each further one, no other begins. Pure.
//
// A switch shows itself by the answers of members behind it. In a group of two there is one such
// member, which may be late: its program is elsewhere. So a silent group of two counts only behind
// another silent registration that had ended before it began, and not long before: see kInARow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "collectives/core/backoff.h"

namespace cepheus::coll {

class Silence {
 public:
  using Duration = Backoff::Duration;
  // Silent registrations with a longer pause between them, in which others were free to begin, are not
  // in a row: the memory begins anew. Each of two late members of two groups says nothing about the
  // other one, or about a switch. Then a fabric without a switch costs a second in each such
  // pause, as it does where this memory holds registrations for the longest time.
  static constexpr Duration kInARow = Backoff::kLongest;

  // No member has answered a registration from `began` to `now`, of `members` with the one that leads.
  // One that began before the end of another, in another communicator, says nothing new.
  void note(Duration began, Duration now, std::uint32_t members, std::string reason) {
    if (seen_ && began - *seen_ > backoff_.interval() + kInARow) *this = {};
    const bool follows = seen_ && began >= *seen_;
    const bool counts = follows || (members > 2 && !is_known());
    if (counts || !seen_) seen_ = now;
    if (!counts) return;
    backoff_.ended(now);
    reason_ = std::move(reason);
  }
  // A switch has answered.
  void end(Duration now) {
    backoff_.began(now);
    reason_.clear();
    seen_.reset();
  }
  // Registrations shall not begin at `now`, for reason().
  bool holds(Duration now) const { return is_known() && now < *seen_ + backoff_.interval(); }
  const std::string& reason() const { return reason_; }

 private:
  bool is_known() const { return !reason_.empty(); }

  Backoff backoff_;
  std::optional<Duration> seen_;  // the end of the last silent one
  std::string reason_;
};

}  // namespace cepheus::coll
