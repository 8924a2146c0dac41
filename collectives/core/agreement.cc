// A group is whole, has failed, or is drained, and never goes back. path() follows from that, from
// GONE and from the switch-over; no path is stored. Units grow, so each message is about an
// earlier, the present or a later unit, and receive() tells these apart.
//
// A LACK that comes before the drain is deferred. One for a unit that this rank has not reached
// needs no answer: its SWITCH_OVER will be that. Each use of `rules` is a rule that campaigns
// switch off, to show that it is needed (core/rules.h).
#include "collectives/core/agreement.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "collectives/core/rules.h"
#include "wire/situation.h"

namespace cepheus::coll {

using Kind = ControlMessage::Kind;

const char* name(Cause cause) {
  constexpr const char* kNames[] = {"work", "watchdog", "device", "leader", "lost"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Cause::kCount));
  return cause < Cause::kCount ? kNames[static_cast<std::size_t>(cause)] : "unknown";
}

ControlMessage Agreement::message(Kind kind, std::uint64_t unit, std::uint64_t value) const {
  ControlMessage m{};
  m.kind = kind;
  m.generation = generation_;
  m.unit = unit;
  m.value = value;
  m.cause = cause_;
  std::snprintf(m.reason, sizeof m.reason, "%s", reason_.c_str());
  return m;
}

void Agreement::send(int to, const ControlMessage& m, Actions& out) const {
  out.push_back({Action::Kind::kSend, to, m});
}

void Agreement::enter(std::uint64_t unit, int root, std::uint64_t retry_after, Actions& out) {
  position_ = unit;
  inside_ = true;
  root_ = root;
  sent_ = false;
  requested_root_ = false;
  gone_ = false;
  request_at_.reset();
  request_in_ = kRequest;
  request_again_in_ = kRequestAgain;
  requested_since_ = false;
  delivered_ = 0;
  retry_after_ = retry_after;
  if (may_decide() && is_drained() && !switch_over_) {
    CEPHEUS_SITUATION("a root begins a unit, and its group has failed before");
    decide_switch_over(out);
  }
}

void Agreement::leave(std::uint64_t next_unit, Actions& out) {
  std::erase_if(requested_, [&](const Requested& requested) {
    if (requested.unit >= next_unit) return false;
    // A LACK was an answer, too.
    const bool answered = requested_root_ && requested.unit == position_;
    CEPHEUS_SITUATION("a member ends a unit that another one has requested");
    if (!answered) send(requested.by, message(Kind::kHave, requested.unit, 0), out);
    return true;
  });
  position_ = next_unit;
  inside_ = false;
}

void Agreement::fail(Cause cause, const std::string& reason) {
  if (has_failed()) return;
  stage_ = Stage::kFailed;
  cause_ = cause;
  reason_ = reason;
}

void Agreement::drained(bool unacknowledged, Actions& out) {
  if (is_drained()) return;
  stage_ = Stage::kDrained;
  if (is_root() && sent_ && rules.sent_is_served) {
    CEPHEUS_SITUATION("a group fails while its root has sent a part of a unit");
    answered_.assign(static_cast<std::size_t>(size_), false);
    unanswered_ = size_ - 1;
    send(Action::kEveryone, message(Kind::kFailed, position_, 0), out);
  } else {
    if (may_decide() && !switch_over_) decide_switch_over(out);
    if (unacknowledged) send(Action::kEveryone, message(Kind::kFailed, kNoUnit, 0), out);
  }
  if (unacknowledged && !is_root())
    CEPHEUS_SITUATION("a group fails after a root has returned, and members may lack its data");
  for (const Deferred& each : deferred_) take_lack(each.from, each.message, out);
}

bool Agreement::may_decide() const { return is_root() || (inside_ && !rules.root_decides); }

void Agreement::decide_switch_over(Actions& out) {
  switch_over_ = position_;
  retry_at_ = position_ + retry_after_;
  send(Action::kEveryone, message(Kind::kSwitchOver, position_, retry_at_), out);
}

void Agreement::give_up(std::uint64_t unit, std::uint64_t retry_at, const std::string& reason) {
  fail(Cause::kWork, reason);
  if (switch_over_) return;
  switch_over_ = unit;
  retry_at_ = retry_at;
}

void Agreement::lack(std::uint64_t bytes, Actions& out) {
  if (requested_root_) return;
  requested_root_ = true;
  send(root_, message(Kind::kLack, position_, bytes), out);
}

void Agreement::gone(int to, std::uint64_t unit, Actions& out) const {
  send(to, message(Kind::kGone, unit, 0), out);
}

void Agreement::deliver(int to, std::uint64_t unit, Actions& out) const {
  send(to, message(Kind::kDelivered, unit, 0), out);
}

void Agreement::watch(Time now, Actions& out) {
  if (!inside_ || is_root() || has_failed()) return;
  if (!request_at_) request_at_ = now + request_in_;
  if (now < *request_at_) return;
  request_at_ = now + request_again_in_;
  request_again_in_ = std::min(2 * request_again_in_, kRequestSeldom);
  requested_since_ = true;
  send(root_, message(Kind::kWaiting, position_, 0), out);
}

void Agreement::receive(int from, const ControlMessage& m, Actions& out) {
  switch (m.kind) {
    case Kind::kFailed:
      fail(m.cause, m.reason);
      if (m.unit == kNoUnit) return;
      if (m.unit < position_) {
        CEPHEUS_SITUATION("FAILED comes to a member that has its unit");
        send(from, message(Kind::kHave, m.unit, 0), out);
      } else if (rules.late_answer) {
        requested_.push_back({m.unit, from});
      }
      return;
    case Kind::kSwitchOver:
      fail(m.cause, m.reason);
      if (switch_over_) return;
      if (!is_drained())
        CEPHEUS_SITUATION("SWITCH_OVER comes before its receiver has drained its groups");
      switch_over_ = m.unit;
      retry_at_ = rules.one_retry_unit ? m.value : m.unit + retry_after_;
      return;
    case Kind::kLack:
      fail(m.cause, m.reason);
      if (is_drained() || !rules.lack_waits) {
        take_lack(from, m, out);
      } else {
        CEPHEUS_SITUATION("LACK comes before its receiver has drained its groups");
        deferred_.push_back({from, m});
      }
      return;
    case Kind::kHave:
      if (m.unit == position_) return take_answer(from);
      CEPHEUS_RARE_SITUATION("HAVE comes after its root has left the unit");
      return;
    case Kind::kGone:
      gone_ = gone_ || (inside_ && requested_root_ && from == root_ && m.unit == position_);
      return;
    case Kind::kWaiting:
      return take_waiting(from, m.unit, out);
    case Kind::kDelivered:
      return take_delivered(from, m.unit);
    case Kind::kLast:
    case Kind::kLastReceived:
      return;  // none of its business
  }
}

// The root may have returned long ago. A root inside this unit, or before it, does not answer.
void Agreement::take_waiting(int from, std::uint64_t unit, Actions& out) {
  if (unit >= position_) {
    CEPHEUS_SITUATION("WAITING comes before its root has ended the unit");
    return;
  }
  if (has_failed()) {
    CEPHEUS_RARE_SITUATION("WAITING comes to a root after its group failed");
    send(from, message(Kind::kFailed, kNoUnit, 0), out);
  } else {
    out.push_back({Action::Kind::kSendDelivered, from, message(Kind::kWaiting, unit, 0)});
  }
}

// The first answer may overtake a completion that this member's NIC is about to deliver. So may
// answers that come together with it: the root was outside MPI while this member asked.
void Agreement::take_delivered(int from, std::uint64_t unit) {
  if (!inside_ || from != root_ || unit != position_) {
    CEPHEUS_SITUATION("DELIVERED comes after its unit");
    return;
  }
  if (!std::exchange(requested_since_, false) && rules.two_answers) return;
  if (++delivered_ < 2 && rules.two_answers) {
    request_at_.reset();
    request_in_ = request_again_in_ = kRequestAgain;
    return;
  }
  CEPHEUS_SITUATION("a member takes a unit for lost");
  fail(Cause::kLost, "the fabric lost data: it never arrived at member " + std::to_string(rank_) +
                         ", but was acknowledged (see old_duplicate_answered of the switches)");
}

void Agreement::take_lack(int from, const ControlMessage& m, Actions& out) {
  if (switch_over_ && m.unit >= *switch_over_) {
    CEPHEUS_SITUATION("LACK and SWITCH_OVER cross");
    return;  // the SWITCH_OVER is the answer
  }
  if (m.unit < position_) {
    CEPHEUS_SITUATION("a member lacks a unit from which its root has returned");
    out.push_back({Action::Kind::kServeStored, from, m});
  } else if (m.unit == position_ && is_root() && sent_) {
    take_answer(from);
    out.push_back({Action::Kind::kServeCurrent, from, m});
  } else {
    CEPHEUS_SITUATION("LACK comes before the root is at its unit");
  }
  // Else this rank has not come to that unit: it will decide on a switch-over there.
}

void Agreement::take_answer(int from) {
  const auto at = static_cast<std::size_t>(from);
  if (at >= answered_.size() || answered_[at]) return;
  answered_[at] = true;
  --unanswered_;
}

Agreement::Path Agreement::path() const {
  if (!has_failed()) return Path::kMulticast;
  // Buffers may still be written to.
  if (!is_drained() && rules.repair_waits) return Path::kDrain;
  if (gone_) return Path::kGone;
  return switch_over_ && position_ >= *switch_over_ ? Path::kSaved : Path::kRepair;
}

}  // namespace cepheus::coll
