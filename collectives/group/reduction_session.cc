// progress() asks the agreement for the way of the gather under way, and look_after() tells it what
// has happened: messages, this member's end of the group, results from a holder. act() carries its
// output out.
//
// All members set up a group at one call. A member that can't take part in that gives up, and so all
// calls end in errors: the others wait in this call, and would take the member's next one for it.
#include "collectives/group/reduction_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/core/counters.h"
#include "collectives/core/parameters.h"
#include "collectives/group/clock.h"
#include "wire/situation.h"

namespace cepheus::coll {

using GatherPath = RootlessAgreement::Path;
using GroupStage = RootlessAgreement::Stage;
using RootlessKind = RootlessMessage::Kind;

ReductionSession::ReductionSession(const Team& team, std::function<void()> called, bool adds_floats)
    : team_(team),
      sums_(adds_floats),
      link_(team,
            [this, called = std::move(called)] {
              has_message_ = true;
              called();
            }),
      agreement_(team.self(), team.size(), window()),
      results_(std::size_t{2} * window()),
      since_(Clock::now()) {}

std::uint32_t ReductionSession::window() {
  return parameters().has_long_reductions() ? kWindow : 1;
}

// --- Calls.

void ReductionSession::begin(const CallUnits& call) {
  units_ = call;
  look_for_pairs();
  call_ = agreement_.start();
  first_unit_ = agreement_.units();
  served_bytes_ = 0;
  is_repaired_ = false;
}

// The group, or the next one, has the pairs of the call's sums.
void ReductionSession::look_for_pairs() {
  units_.has_pairs = !units_.combiner || sums_.may_serve(*units_.combiner);
}

Code ReductionSession::progress() {
  look_after();
  Code rc = Code::kDone;
  while (agreement_.path(call_) == GatherPath::kSetUp && rc == Code::kDone) rc = set_up();
  if (rc == Code::kPending) return rc;
  switch (agreement_.path(call_)) {
    case GatherPath::kNetwork:
      contribute();
      return Code::kPending;
    case GatherPath::kSetUp:
    case GatherPath::kWait:
      return Code::kPending;
    case GatherPath::kDone:
      if (!fits()) {
        reason_ = units_.has_pairs ? too_long_ : sums_.why_not();
        return Code::kNotServed;
      }
      reason_ = "the network";
      return Code::kDone;
    case GatherPath::kSaved:
      reason_ = why_not_;
      served_bytes_ = agreement_.first_unit(call_) * units_.bytes(0, most_bytes_);
      return Code::kNotServed;
    case GatherPath::kError:
      break;
  }
  return fail_call();
}

Code ReductionSession::fail_call() {
  if (!std::exchange(is_failure_logged_, true))
    host::log(0, "cepheus: %s: its reductions end in errors: %s", team_.name().c_str(),
              agreement_.reason().c_str());
  return Code::kFailed;
}

void ReductionSession::give_up(const std::string& reason, bool is_refusal) {
  agreement_.give_up(reason, is_refusal, out_);
  act();
  (void)fail_call();
}

void ReductionSession::lose(int member) {
  agreement_.lose(member, out_);
  act();
}

bool ReductionSession::start(std::uint64_t unit) {
  std::byte* const result = prepare_result(unit);
  const std::size_t bytes = unit_bytes(unit);
  if (!units_.combiner || bytes == 0) return group_->start(units_.block, result, bytes);
  return group_->start(units_.values + units_.offset(unit - first_unit_, most_bytes_),
                       *units_.combiner, result, bytes);
}

void ReductionSession::contribute() {
  const std::uint64_t end = std::min<std::uint64_t>(first_unit_ + units_.count(most_bytes_),
                                                    agreement_.units() + window());
  while (contributed_ < end && start(contributed_)) agreement_.contribute(++contributed_);
}

// ... of the agreement's next unit is in its memory. Its part of the call's values is not needed any more.
void ReductionSession::take_result() {
  const std::uint64_t unit = agreement_.units(), index = unit - first_unit_;
  if (units_.combiner && fits())
    std::memcpy(units_.result + units_.offset(index, most_bytes_), results_.result(unit),
                unit_bytes(unit));
  agreement_.take_result(index + 1 == units_.count(most_bytes_), out_);
}

// --- Groups.

bool ReductionSession::listen() {
  if (link_.open() == Code::kDone) return true;
  give_up_alone("it can't receive messages about its group: MPI's messages fail");
  return false;
}

Code ReductionSession::set_up() {
  if (!listen()) return Code::kDone;
  // Another member still copies results of the last group from this one.
  if (!agreement_.is_finished()) return Code::kPending;
  if (group_ == nullptr) {
    const bool again = was_refused_ || agreement_.generation() > 0;
    group_ = std::make_unique<ReductionGroup>(team_, again, sums_.are_wanted());
    group_->lane().set_retry_after(retry_after(backoff_));
  }
  switch (group_->lane().progress()) {
    case TeamLane::State::kReady:
      renew();
      if (group_->lane().takes_less())
        give_up_alone(
            "its device takes shorter messages than that of the rank that leads the group");
      if (group_->lane().is_one_sided())
        give_up_alone("it can't send all members the outcome of a set-up: MPI's messages fail");
      return Code::kDone;
    case TeamLane::State::kFailed:
      if (group_->lane().is_one_sided())
        give_up_alone(group_->lane().reason());
      else
        refuse(group_->lane());
      return Code::kDone;
    default:
      return Code::kPending;
  }
}

// The others wait for this member, in a set-up or in a call.
void ReductionSession::give_up_alone(const std::string& what) {
  give_up(rank_text(team_) + ": " + what, false);
}

void ReductionSession::renew() {
  const TeamLane& lane = group_->lane();
  most_bytes_ = lane.max_message();
  too_long_ = "its data is longer than the " + std::to_string(most_bytes_) +
              " bytes that its group takes: lower " + host::parameter("reduction_limit") +
              " to that";
  if (window() > 1) results_.reserve(most_bytes_);
  contributed_ = first_unit_ = 0;
  has_groups_ = true;
  was_refused_ = false;
  since_ = Clock::now();
  since_call_ = call_;
  backoff_.began(since_.time_since_epoch());
  counters().add(Counters::Which::kGroups);
  if (team_.is_leader())
    host::log(1, "cepheus: %s: reductions in the network on group %s epoch %u",
              team_.name().c_str(), lane.address().c_str(), lane.epoch());
  sums_.renew(lane.sums(), lane.why_not_by_rank(), team_);
  look_for_pairs();
  agreement_.renew(call_, out_);
  act();
}

void ReductionSession::refuse(const TeamLane& lane) {
  const auto now = Clock::now();
  backoff_.ended(now.time_since_epoch());
  since_ = now;
  since_call_ = call_;
  why_not_ = lane.reason();
  if (team_.is_leader())
    host::log(was_refused_ ? 2 : 1, "cepheus: %s: reductions by messages between ranks: %s",
              team_.name().c_str(), lane.reason());
  was_refused_ = true;
  const std::uint64_t after = lane.retry_after();
  agreement_.refuse(after == TeamLane::kNever ? TeamLane::kNever : call_ + after);
  group_.reset();
}

// Of the next attempt, once this one has failed: the backoff as it is then, at the rate of calls since
// the last one. Before the first attempt no call was seen: it gives Backoff::kFewest.
std::uint64_t ReductionSession::retry_after(Backoff backoff) const {
  const auto now = Clock::now();
  backoff.ended(now.time_since_epoch());
  return Backoff::units_for(backoff.interval(), call_ - since_call_, now - since_);
}

void ReductionSession::stop_group() {
  agreement_.set_retry_after(retry_after(backoff_));
  backoff_.ended(Clock::now().time_since_epoch());
  why_not_ = agreement_.reason();
  counters().add_fallback(agreement_.cause());
  if (team_.is_leader())
    host::log(1, "cepheus: %s: the group of its reductions failed (%s): %s", team_.name().c_str(),
              name(agreement_.cause()), why_not_.c_str());
  group_->stop(why_not_);
}

void ReductionSession::take_results() {
  while (group_->take_result()) take_result();
}

void ReductionSession::look_at_group() {
  if (agreement_.stage() != GroupStage::kWhole && agreement_.stage() != GroupStage::kStopping)
    return;
  take_results();
  Cause cause{};
  std::string reason;
  if (agreement_.stage() == GroupStage::kWhole && group_->has_failed(cause, reason))
    agreement_.fail(cause, reason, out_);
  act();
  if (agreement_.stage() != GroupStage::kStopping || !group_->is_drained()) return;
  take_results();  // between the two looks
  group_.reset();
  agreement_.drained(out_);
  act();
}

// --- Messages.

void ReductionSession::look_after() {
  if (end_ == End::kReleased) return;
  if (!link_.has_opened()) return;
  // A host may refuse the receive behind each message.
  if (link_.open() != Code::kDone && !agreement_.is_ended())
    give_up_alone("it can't receive messages about its group: MPI's messages fail");
  take_served();
  look_at_group();
  if (has_message_.exchange(false) || ++looks_ % kLooksWithoutNotice == 0) receive();
  copy();
  agreement_.watch(Clock::now(), out_);
  act();
}

void ReductionSession::receive() {
  int from = 0;
  RootlessMessage message{};
  while (link_.receive(from, message)) {
    if (message.has_groups != 0) has_groups_ = true;
    if (take_end(message)) continue;
    // The NIC may have the result, too, and this member has not looked since.
    if (message.kind == RootlessKind::kHas) {
      (void)Transport::instance().progress();
      look_at_group();
    }
    agreement_.receive(from, message, out_);
    is_ended_elsewhere_ = is_ended_elsewhere_ || agreement_.is_ended();
    act();
  }
}

// The holder's results of the call under way, one after the other.
void ReductionSession::copy() {
  while (agreement_.stage() == GroupStage::kCopying) {
    const std::uint64_t unit = agreement_.units();
    if (!is_copying_) {
      (void)prepare_result(unit);
      std::vector<std::byte>& message = results_.message_of(unit);
      const Code rc = copies_.receive(message.data(), message.size(), agreement_.holder(),
                                      Tag::kReductionResult, team_);
      if (rc != Code::kDone) return lose(agreement_.holder());
      is_copying_ = true;
    }
    Code error = Code::kDone;
    if (!copies_.test(error)) return;
    is_copying_ = false;
    const bool is_it = results_.has(agreement_.generation(), unit);
    if (error != Code::kDone || !is_it) return lose(agreement_.holder());
    counters().add(Counters::Which::kRepaired);
    is_repaired_ = true;
    take_result();
    act();
  }
}

void ReductionSession::act() {
  while (out_.stops || out_.releases || !out_.sends.empty() || !out_.serves.empty()) {
    const RootlessOutput out = std::exchange(out_, {});
    if (out.stops) stop_group();
    for (const auto& each : out.sends) {
      RootlessMessage message = each.message;
      // The set-up under way may yet give others a group, which this member does not learn.
      if (message.kind == RootlessKind::kEnded && group_ != nullptr && !is_ended_elsewhere_)
        has_groups_ = true;
      message.has_groups = has_groups_ ? 1 : 0;
      if (link_.send(each.to, message) == Code::kDone) continue;
      CEPHEUS_RARE_SITUATION("a message about a group of reductions can't be sent");
      agreement_.lose(each.to, out_);
    }
    for (const auto& each : out.serves) serve(each);
  }
}

// From the kept result itself.
void ReductionSession::serve(const RootlessOutput::Serve& serve) {
  ++serving_;
  for (std::uint64_t unit = serve.first; unit < serve.end; ++unit) {
    const std::vector<std::byte>& result = results_.message_of(unit);
    counters().add(Counters::Which::kServed);
    const Code rc =
        serves_.send(result.data(), result.size(), serve.to, Tag::kReductionResult, team_);
    if (rc != Code::kDone) agreement_.lose(serve.to, out_);
  }
}

void ReductionSession::take_served() {
  Code error = Code::kDone;
  if (serving_ == 0 || !serves_.test(error)) return;
  for (; serving_ > 0; --serving_) agreement_.served(out_);
}

// --- The end.

bool ReductionSession::take_end(const RootlessMessage& message) {
  if (message.kind == RootlessKind::kClosed) ++closed_;
  if (message.kind == RootlessKind::kRelease) {
    is_released_ = true;
    has_ended_ = message.is_ended != 0;
  }
  if (message.kind == RootlessKind::kReleased) ++gone_;
  return message.kind == RootlessKind::kClosed || message.kind == RootlessKind::kRelease ||
         message.kind == RootlessKind::kReleased;
}

void ReductionSession::send_end(int to, RootlessKind kind) {
  RootlessMessage message{};
  message.kind = kind;
  message.is_ended = agreement_.is_ended() ? 1 : 0;
  (void)link_.send(to, message);
}

// Messages between two members stay in order. So once member 0 has let all go, it knows of each failure,
// and behind RELEASED there is no message of that member. ENDED of another member may still be under way
// to one that member 0 lets go: RELEASE has that.
void ReductionSession::end_with_all() {
  const int others = team_.size() - 1;
  if (!team_.is_leader()) {
    if (end_ == End::kOpen) {
      send_end(Team::kLeader, RootlessKind::kClosed);
      end_ = End::kClosed;
    }
    if (!is_released_) return;
    send_end(Team::kLeader, RootlessKind::kReleased);
    end_ = End::kReleased;
    return;
  }
  if (end_ == End::kOpen && closed_ == others) {
    for (int member = 1; member <= others; ++member) send_end(member, RootlessKind::kRelease);
    end_ = End::kClosed;
  }
  if (end_ == End::kClosed && gone_ == others) end_ = End::kReleased;
}

bool ReductionSession::tear_down() {
  if (!has_groups()) return true;  // on all members: none waits for another
  agreement_.close();
  look_after();
  if (end_ != End::kReleased && agreement_.is_finished() && serving_ == 0) end_with_all();
  if (end_ == End::kReleased) group_.reset();
  return end_ == End::kReleased;
}

void ReductionSession::detach() {
  copies_.forget();
  serves_.forget();
  group_.reset();  // a set-up that other members have given up
  link_.close();
}

}  // namespace cepheus::coll
