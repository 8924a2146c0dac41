// One team's way through its life: set_up() of the lane that a broadcast needs, units by begin()
// and run(), a failover by the Agreement's actions in take(), and try_again() with a new Session at
// the unit on which the SWITCH_OVER agreed. tear_down() ends it.
//
// Ranks set up lanes at the same broadcast, because size and count alone decide the lane. A message
// of a later generation of groups is held until this rank has them, too; one of an earlier
// generation is dropped. A refused set-up is tried again after a number of units that its leader
// chooses (Backoff).
#include "collectives/multicast.h"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "collectives/core/counters.h"
#include "collectives/core/parameters.h"
#include "collectives/core/rules.h"
#include "collectives/group/clock.h"
#include "collectives/group/session.h"
#include "collectives/units/bulk_operation.h"
#include "collectives/units/eager_operation.h"
#include "wire/situation.h"

namespace cepheus::coll {

constexpr std::chrono::seconds kLeaderSpeaksFirst{1};

Multicast::Multicast(const Team& team, std::function<void()> called)
    : team_(team),
      session_(std::make_unique<Session>(team, 1, false)),
      link_(team, std::move(called)),
      eager_(std::make_unique<EagerOperation>()),
      bulk_(std::make_unique<BulkOperation>()),
      since_(Clock::now()),
      tear_down_(team, link_) {}

Multicast::~Multicast() = default;

// --- Broadcasts.

bool Multicast::is_small(size_t bytes) { return bytes <= parameters().eager_bytes(); }

size_t Multicast::unit_bytes(bool small) {
  return small ? parameters().eager_unit() : BulkOperation::most_bytes();
}

uint64_t Multicast::take_units(size_t bytes) {
  const size_t unit = unit_bytes(is_small(bytes));
  const uint64_t first = next_unit_;
  next_unit_ += (bytes + unit - 1) / unit;
  ++broadcasts_;
  return first;
}

// All members know a switch-over before the broadcast of this unit, so all take the same path.
bool Multicast::switched_over_before(uint64_t unit) const {
  const auto first = session_->agreement().switch_over();
  return first.has_value() && *first < unit;
}

Code Multicast::prepare(uint64_t first, bool small) {
  if (is_ended_) return Code::kFailed;
  if (switched_over_before(first) && first >= session_->agreement().retry_at()) {
    const Code rc = try_again(first);
    if (rc != Code::kDone) return rc;
  }
  if (switched_over_before(first)) {
    reason_ = session_->agreement().reason();
    return Code::kNotServed;
  }
  TeamLane& needed = small ? session_->eager() : session_->bulk();
  switch (needed.state()) {
    case TeamLane::State::kReady:
    case TeamLane::State::kClosed:
      reason_ = kMulticast;
      return Code::kDone;
    case TeamLane::State::kFailed:
      if (first < needed.retry_at()) {
        reason_ = needed.reason();
        return Code::kNotServed;
      }
      needed.reset();
      break;
    default:
      break;
  }
  return set_up(needed, first);
}

Code Multicast::set_up(TeamLane& lane, uint64_t first) {
  if (lane.state() == TeamLane::State::kUnused) {
    lane.set_retry_after(retry_after(set_up_backoff_));
    const Agreement& agreement = session_->agreement();
    if (agreement.has_failed() && rules.failed_member_refuses) lane.refuse(agreement.reason());
  }
  const bool again = lane.retry_at() != TeamLane::kNever;  // refused before
  switch (lane.progress()) {
    case TeamLane::State::kReady:
      if (lane.is_one_sided()) return end_broadcasts(lane);
      break;
    case TeamLane::State::kFailed:
      if (lane.is_one_sided()) return end_broadcasts(lane);
      set_up_backoff_.ended(Clock::now().time_since_epoch());
      lane.set_retry_at(lane.retry_after() == TeamLane::kNever ? TeamLane::kNever
                                                               : first + lane.retry_after());
      reason_ = lane.reason();
      if (lane.is_refused()) session_->agreement().give_up(first, lane.retry_at(), reason_);
      report(lane, again);
      // The leader ends the job with one error; the others wait for that here, and never return to
      // the program.
      return parameters().chosen_mode() == Mode::kRequire ? Code::kPending : Code::kNotServed;
    default:
      return Code::kPending;
  }
  has_groups_ = true;
  if (const Code rc = link_.open(); rc != Code::kDone) return rc;
  set_up_backoff_.began(Clock::now().time_since_epoch());
  counters().add(Counters::Which::kGroups);
  reason_ = kMulticast;
  report(lane, again);
  return Code::kDone;
}

// The other members do not know of it, and wait for this one or for the outcome.
Code Multicast::end_broadcasts(const TeamLane& lane) {
  is_ended_ = true;
  if (lane.state() == TeamLane::State::kReady) has_groups_ = true;
  host::log(0, "cepheus: %s: its broadcasts end in errors: %s: %s", team_.name().c_str(),
            rank_text(team_).c_str(), lane.reason());
  return Code::kFailed;
}

// The session has failed, and this is the agreed unit for another attempt. All members are here.
Code Multicast::try_again(uint64_t unit) {
  if (next_session_ == nullptr) {
    next_session_ = std::make_unique<Session>(team_, session_->generation() + 1, true);
    Backoff next = backoff_;
    next.ended(Clock::now().time_since_epoch());
    next_session_->eager().set_retry_after(retry_after(next));
  }
  // The port can be opened anew only when nothing holds it any more.
  if (!session_->agreement().is_drained()) return Code::kPending;
  TeamLane& lane = next_session_->eager();
  const TeamLane::State state = lane.progress();
  if (state != TeamLane::State::kReady && state != TeamLane::State::kFailed) return Code::kPending;
  if (lane.is_one_sided()) return end_broadcasts(lane);
  Code error = Code::kDone;
  if (!repairs_.test(error)) return Code::kPending;

  const auto now = Clock::now();
  backoff_.ended(now.time_since_epoch());
  since_ = now;
  since_unit_ = unit;
  std::unique_ptr<Session> next = std::move(next_session_);
  if (state == TeamLane::State::kFailed) {
    CEPHEUS_SITUATION("multicast is tried again, and no group comes up");
    session_->agreement().set_retry_at(
        lane.retry_after() == TeamLane::kNever ? kNoUnit : unit + lane.retry_after());
    if (team_.is_leader()) {
      host::log(1, "cepheus: %s: still %s's own algorithms: %s", team_.name().c_str(),
                host::implementation(), lane.reason());
    }
    return Code::kDone;
  }
  backoff_.began(now.time_since_epoch());
  counters().add(Counters::Which::kGroups);
  session_.swap(next);
  std::vector<Held> held;
  held.swap(held_);
  for (const Held& each : held) session_->agreement().receive(each.from, each.message, actions_);
  reported_ = false;
  report(lane, false);
  return Code::kDone;
}

uint64_t Multicast::retry_after(Backoff backoff) const {
  backoff.ended(Clock::now().time_since_epoch());
  return Backoff::units_for(backoff.interval(), next_unit_ - since_unit_, Clock::now() - since_);
}

Operation& Multicast::begin(const Call& call, bool small) {
  if (small) {
    eager_->begin(call, *session_);
    return *eager_;
  }
  bulk_->begin(call, *session_);
  return *bulk_;
}

Code Multicast::run(Operation& operation) {
  current_ = &operation;
  const Code rc = operation.progress(actions_);
  if (rc != Code::kPending) current_ = nullptr;
  return rc;
}

const std::string& Multicast::failure() const { return session_->agreement().reason(); }

// --- Beside them.

bool Multicast::is_draining() const {
  const Agreement& agreement = session_->agreement();
  return agreement.has_failed() && !agreement.is_drained();
}

void Multicast::look_after() {
  // A link without a posted receive, because the host refused one, hears no member that lacks data.
  if (!link_.is_open() && (!has_groups_ || link_.open() != Code::kDone)) return;
  receive();
  const Agreement& agreement = session_->agreement();
  // Only the rank that lacks the data knows of it yet. Later its own call would fail, and other
  // ranks would end the job because the group failed.
  if (agreement.has_failed() && agreement.cause() == Cause::kLost &&
      parameters().chosen_mode() == Mode::kRequire)
    host::abort_job(team_.comm(), agreement.reason());
  session_->watch(actions_);
  session_->agreement().watch(Clock::now(), actions_);
  // Acting may make more to do.
  while (!actions_.empty()) {
    Actions now;
    now.swap(actions_);
    take(now);
  }
}

void Multicast::receive() {
  int from = 0;
  ControlMessage message{};
  while (link_.receive(from, message)) {
    if (tear_down_.take(from, message)) continue;
    if (message.generation == session_->generation()) {
      session_->agreement().receive(from, message, actions_);
    } else if (message.generation > session_->generation() && rules.early_messages_kept) {
      CEPHEUS_RARE_SITUATION("a message of groups that this rank has not set up yet");
      held_.push_back({from, message});
    }
  }
}

void Multicast::take(const Actions& actions) {
  for (const Action& action : actions) {
    switch (action.kind) {
      case Action::Kind::kSend:
        if (action.to == Action::kEveryone) announce(action.message);
        (void)link_.send(action.to, action.message);
        break;
      case Action::Kind::kServeStored:
        serve_stored(action.to, action.message.unit);
        break;
      case Action::Kind::kSendDelivered:
        if (session_->is_delivered(action.message.unit) || !rules.delivered_is_acknowledged)
          session_->agreement().deliver(action.to, action.message.unit, actions_);
        break;
      case Action::Kind::kServeCurrent:
        if (current_ != nullptr &&
            current_->serve(action.to, action.message.value) == Code::kNotServed)
          session_->agreement().gone(action.to, action.message.unit, actions_);
        break;
    }
  }
}

void Multicast::serve_stored(int to, uint64_t unit) {
  const std::vector<std::byte>* message = session_->stored(unit);
  if (message == nullptr) {
    CEPHEUS_SITUATION("a root has no copy of a unit that a member lacks");
    return session_->agreement().gone(to, unit, actions_);
  }
  counters().add(Counters::Which::kServed);
  (void)repairs_.send(message->data(), message->size(), to, Tag::kRepair, team_);
}

// This member is about to announce that the group is given up.
void Multicast::announce(const ControlMessage& message) {
  if (parameters().chosen_mode() == Mode::kRequire) {
    // The leader knows the reason. It ends the job itself, unless its program computes.
    if (message.cause == Cause::kLeader && !team_.is_leader())
      std::this_thread::sleep_for(kLeaderSpeaksFirst);
    host::abort_job(team_.comm(), message.reason);
  }
  const std::string team = team_.name();
  const auto call = static_cast<unsigned long long>(broadcasts_);
  if (message.kind == ControlMessage::Kind::kSwitchOver) {
    host::log(1,
              "cepheus: %s: %s's own algorithms from broadcast %llu on (%s): %s; "
              "multicast is tried again after %llu more units of broadcasts",
              team.c_str(), host::implementation(), call, name(message.cause), message.reason,
              static_cast<unsigned long long>(message.value - message.unit));
  } else {
    host::log(1,
              "cepheus: %s: the group failed (%s), broadcasts in flight from number %llu on "
              "are completed point to point: %s",
              team.c_str(), name(message.cause), call, message.reason);
  }
}

// `again`: it was refused before, and so reported.
void Multicast::report(const TeamLane& lane, bool again) {
  const char* const name = &lane == &session_->eager() ? "eager lane" : "bulk lane";
  const bool first = !reported_;
  reported_ = true;
  if (!team_.is_leader()) return;
  const bool ready = lane.state() != TeamLane::State::kFailed;
  if (!ready && parameters().chosen_mode() == Mode::kRequire)
    host::abort_job(team_.comm(), lane.reason());
  const int level = (ready ? first || again : !again) ? 1 : 2;
  if (ready) {
    host::log(level, "cepheus: %s: multicast, %s on group %s epoch %u", team_.name().c_str(), name,
              lane.address().c_str(), lane.epoch());
  } else {
    host::log(level, "cepheus: %s: %s's own algorithms for the %s: %s", team_.name().c_str(),
              host::implementation(), name, lane.reason());
  }
}

// --- Tear-down.

bool Multicast::tear_down() {
  if (!has_groups()) return true;  // on all members: none waits for another
  look_after();
  Code error = Code::kDone;
  const bool is_over = tear_down_.progress(session_->is_drained(), bulk_->may_have_reported()) &&
                       repairs_.test(error);
  if (is_over) session_->destroy_groups();
  return is_over;
}

void Multicast::detach() { link_.close(); }

}  // namespace cepheus::coll
