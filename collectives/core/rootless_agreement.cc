// How a member gets from a failed group to the next one: it stops, reports its results to member 0,
// and takes member 0's decision. The states, messages and bounds stand in the header.
//
// Only three places decide anything: report() fixes this member's results, decide() picks the
// member with the most results, and path() says what follows for a call. A member that can't
// reach another one gives up, and all others with it: none guesses.
#include "collectives/core/rootless_agreement.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "collectives/core/rules.h"
#include "wire/situation.h"

namespace cepheus::coll {

namespace {
using RootlessKind = RootlessMessage::Kind;
}  // namespace

const char* name(RootlessKind kind) {
  constexpr const char* kNames[] = {"none",  "FAILED", "STATUS",  "DECISION",
                                    "LACK",  "GONE",   "WAITING", "HAS",
                                    "ENDED", "CLOSED", "RELEASE", "RELEASED"};
  const auto at = static_cast<std::size_t>(kind);
  return kNames[at < std::size(kNames) ? at : 0];
}

RootlessAgreement::RootlessAgreement(int member, int size, std::uint32_t window)
    : member_(member), size_(size), window_(window) {
  if (!decides()) return;
  statuses_.resize(static_cast<std::size_t>(size));
  waitings_.resize(static_cast<std::size_t>(size));
}

// --- Messages.

RootlessMessage RootlessAgreement::message(RootlessKind kind, std::uint64_t units,
                                           std::uint64_t complete) const {
  RootlessMessage m{};
  m.kind = kind;
  m.generation = generation_;
  m.units = units;
  m.complete = complete;
  m.cause = cause_;
  std::snprintf(m.reason, sizeof m.reason, "%s", reason_.c_str());
  return m;
}

void RootlessAgreement::send_to_others(const RootlessMessage& m, int except,
                                       RootlessOutput& out) const {
  for (int to = 0; to < size_; ++to)
    if (to != member_ && to != except) out.sends.push_back({to, m});
}

void RootlessAgreement::receive(int from, const RootlessMessage& m, RootlessOutput& out) {
  if (m.generation > generation_) {
    CEPHEUS_SITUATION("a message of a reducing group that this member has not yet");
    if (m.kind == RootlessKind::kEnded) return take_ended(m, out);
    // WAITING is repeated.
    if (rules.early_is_kept && m.kind != RootlessKind::kWaiting) early_.push_back({from, m});
    return;
  }
  if (m.generation < generation_) return;  // all members have what that group gave
  switch (m.kind) {
    case RootlessKind::kFailed:
      return take_failed(from, m, out);
    case RootlessKind::kStatus:
      return take_status(from, {m.units, m.complete, m.calls}, out);
    case RootlessKind::kDecision:
      return take_decision(m, out);
    case RootlessKind::kLack:
      return serve(from, m, out);
    case RootlessKind::kGone:
      return give_up(from,
                     "member " + std::to_string(from) + " does not keep unit " +
                         std::to_string(m.units) + ", which member " + std::to_string(member_) +
                         " lacks",
                     out);
    case RootlessKind::kWaiting:
      return take_waiting(m, from, out);
    case RootlessKind::kHas:
      return take_has(m, from, out);
    case RootlessKind::kEnded:
      return take_ended(m, out);
    case RootlessKind::kClosed:
    case RootlessKind::kRelease:
    case RootlessKind::kReleased:
      break;
  }
}

// --- The group.

void RootlessAgreement::renew(std::uint64_t call, RootlessOutput& out) {
  ++generation_;
  stage_ = Stage::kWhole;
  calls_ = call;
  units_ = seen_ = contributed_ = complete_ = 0;
  std::ranges::fill(statuses_, std::nullopt);
  requests_.reset();
  served_ = 0;
  forget_requests();
  for (const Early& each : std::exchange(early_, {})) receive(each.from, each.message, out);
}

void RootlessAgreement::see_result() {
  ++seen_;
  forget_requests();
}

void RootlessAgreement::take_result(bool ends_call, RootlessOutput& out) {
  seen_ = std::max(seen_, ++units_);
  if (ends_call) {
    if (stage_ == Stage::kStopping)
      CEPHEUS_RARE_SITUATION("a reduction is complete while its group stops");
    ++calls_;
    complete_ = units_;
  }
  forget_requests();
  if (stage_ == Stage::kCopying && units_ == decided_units_) {
    stage_ = Stage::kNoGroup;
    release_if_served(out);
  }
}

void RootlessAgreement::stop(Cause cause, const std::string& reason, RootlessOutput& out) {
  stage_ = Stage::kStopping;
  cause_ = cause;
  reason_ = reason;
  out.stops = true;
  if (!rules.status_after_drain) report(out);
}

void RootlessAgreement::fail(Cause cause, const std::string& reason, RootlessOutput& out) {
  if (stage_ != Stage::kWhole) return;
  if (is_closed_ && rules.closed_finds_none) {
    CEPHEUS_RARE_SITUATION("a group fails at a member that has no more reductions");
    return;
  }
  stop(cause, reason, out);
  if (!decides())
    out.sends.push_back({0, message(RootlessKind::kFailed)});
  else if (rules.failure_is_relayed)
    send_to_others(message(RootlessKind::kFailed), member_, out);
}

void RootlessAgreement::take_failed(int from, const RootlessMessage& m, RootlessOutput& out) {
  if (stage_ != Stage::kWhole) {
    CEPHEUS_SITUATION("two members find the failure of a reducing group");
    return;
  }
  stop(m.cause, m.reason, out);
  if (decides() && rules.failure_is_relayed)
    send_to_others(message(RootlessKind::kFailed), from, out);
}

void RootlessAgreement::drained(RootlessOutput& out) {
  if (stage_ != Stage::kStopping) return;
  stage_ = Stage::kStopped;
  if (rules.status_after_drain) report(out);
}

// Fixes this member's results.
void RootlessAgreement::report(RootlessOutput& out) {
  if (is_ended_) return;
  if (decides()) return take_status(member_, {units_, complete_, calls_}, out);
  RootlessMessage status = message(RootlessKind::kStatus, units_, complete_);
  status.calls = calls_;
  out.sends.push_back({0, status});
}

// --- The decision.

void RootlessAgreement::take_status(int from, const Status& status, RootlessOutput& out) {
  if (is_ended_ || !decides()) return;
  statuses_[static_cast<std::size_t>(from)] = status;
  const auto come = std::ranges::count_if(statuses_, [](const auto& each) { return !!each; });
  const bool is_due = rules.decision_after_all ? come == size_ : come == std::max(1, size_ - 1);
  if (is_due) decide(out);
}

void RootlessAgreement::decide(RootlessOutput& out) {
  Status furthest{};
  for (const auto& each : statuses_)
    if (each && each->units >= furthest.units) furthest = *each;
  if (!rules.furthest_decides) furthest = *statuses_[0];
  if (furthest.units > furthest.complete)
    CEPHEUS_SITUATION("a group fails after a part of a reduction that is complete nowhere");
  const std::uint64_t final_units = rules.units_are_final ? furthest.units : furthest.complete;
  std::vector<int> holders;
  for (int i = 0; i < size_; ++i) {
    const auto& status = statuses_[static_cast<std::size_t>(i)];
    if (status && status->units >= final_units) holders.push_back(i);
  }
  std::vector<int> holder_of(static_cast<std::size_t>(size_), -1);
  std::vector<std::uint32_t> requests(static_cast<std::size_t>(size_));
  std::size_t lacking = 0;
  for (std::size_t i = 0; i < holder_of.size(); ++i) {
    if (!statuses_[i] || statuses_[i]->units >= final_units) continue;
    if (statuses_[i]->units + window_ == final_units)
      CEPHEUS_SITUATION("a member lacks a whole window of results");
    holder_of[i] = holders[lacking++ % holders.size()];
    ++requests[static_cast<std::size_t>(holder_of[i])];
  }
  if (lacking > 1 && holders.size() > 1)
    CEPHEUS_RARE_SITUATION("several members serve results that others lack");
  RootlessMessage decision = message(RootlessKind::kDecision, final_units);
  decision.calls = furthest.calls;
  decision.retry_at = furthest.calls + retry_after_;
  for (int to = size_ - 1; to >= 0; --to) {
    decision.member = holder_of[static_cast<std::size_t>(to)];
    decision.requests = requests[static_cast<std::size_t>(to)];
    if (to != member_) out.sends.push_back({to, decision});
  }
  take_decision(decision, out);
}

void RootlessAgreement::take_decision(const RootlessMessage& decision, RootlessOutput& out) {
  requests_ = rules.served_before_release ? decision.requests : 0;
  if (is_ended_) return release_if_served(out);
  decided_units_ = decision.units;
  holder_ = decision.member;
  retry_at_ = rules.one_retry_call ? decision.retry_at : decision.calls + retry_after_;
  if (started_ == calls_) CEPHEUS_SITUATION("a member decides on a failure between its reductions");
  if (holder_ < 0 || !rules.lacking_is_copied) {
    stage_ = Stage::kNoGroup;
  } else {
    CEPHEUS_SITUATION("a member lacks results that another one has");
    stage_ = Stage::kCopying;
    out.sends.push_back({holder_, message(RootlessKind::kLack, units_, decided_units_)});
  }
  release_if_served(out);
}

// --- Results that other members lack.

std::uint64_t RootlessAgreement::first_kept() const {
  const std::uint64_t kept = rules.results_are_kept ? window_ : window_ - 1;
  return units_ - std::min(units_, kept);
}

void RootlessAgreement::serve(int to, const RootlessMessage& lack, RootlessOutput& out) {
  if (!requests_) CEPHEUS_RARE_SITUATION("LACK comes before its receiver knows the decision");
  if (lack.units >= first_kept() && lack.complete <= units_)
    return out.serves.push_back({to, lack.units, lack.complete});
  out.sends.push_back({to, message(RootlessKind::kGone, lack.units)});
  served(out);
}

void RootlessAgreement::served(RootlessOutput& out) {
  ++served_;
  release_if_served(out);
}

void RootlessAgreement::release_if_served(RootlessOutput& out) {
  if (requests_ && served_ >= *requests_ && stage_ != Stage::kCopying) out.releases = true;
}

// --- Results that the fabric has lost.

void RootlessAgreement::forget_requests() {
  request_at_.reset();
  request_in_ = kRequest;
  request_again_in_ = kRequestAgain;
  requested_since_ = false;
  answers_ = 0;
  requested_at_once_ = 1;
  std::ranges::fill(waitings_, std::uint8_t{0});
}

void RootlessAgreement::watch(Time now, RootlessOutput& out) {
  if (stage_ != Stage::kWhole || calls_ >= started_ || !rules.lost_is_found) return;
  if (!request_at_) request_at_ = now + request_in_;
  if (now < *request_at_) return;
  request_at_ = now + request_again_in_;
  request_again_in_ = std::min(2 * request_again_in_, kRequestSeldom);
  requested_since_ = true;
  request(out);
}

// Member 0 may wait, too. It sends WAITING to ever more members at a time, because only some may
// have the result.
void RootlessAgreement::request(RootlessOutput& out) {
  const RootlessMessage waiting = message(RootlessKind::kWaiting, seen_, contributed_);
  if (!decides()) return out.sends.push_back({0, waiting});
  for (int i = 0; i < std::min(requested_at_once_, size_ - 1); ++i) {
    out.sends.push_back({next_requested_, waiting});
    next_requested_ = next_requested_ % (size_ - 1) + 1;
  }
  if (answers_ == 0) requested_at_once_ = std::min(2 * requested_at_once_, kMostRequested);
}

void RootlessAgreement::take_waiting(const RootlessMessage& m, int from, RootlessOutput& out) {
  if (stage_ != Stage::kWhole) return;
  if (seen_ > m.units) return out.sends.push_back({from, message(RootlessKind::kHas, m.units)});
  if (!decides() || m.units != seen_ || m.complete <= seen_ || contributed_ <= seen_) return;
  std::uint8_t& waitings = waitings_[static_cast<std::size_t>(from)];
  waitings = std::min<std::uint8_t>(waitings + 1, kSilent);
  const auto silent = std::ranges::count(waitings_, kSilent);
  if (silent < size_ - 1 || !rules.silent_is_lost) return;
  CEPHEUS_SITUATION("a result reaches no member");
  fail(Cause::kLost, "a result does not arrive at any member, and all have contributed to it", out);
}

void RootlessAgreement::take_has(const RootlessMessage& m, int from, RootlessOutput& out) {
  if (stage_ != Stage::kWhole || m.units != seen_) {
    CEPHEUS_SITUATION("HAS comes after its result");
    return;
  }
  if (!std::exchange(requested_since_, false) && rules.second_answer) return;
  if (++answers_ < 2 && rules.second_answer) {
    request_at_.reset();
    request_in_ = request_again_in_ = kRequestAgain;
    requested_at_once_ = 1;
    if (decides()) next_requested_ = from;
    return;
  }
  CEPHEUS_SITUATION("a member takes a result for lost");
  fail(Cause::kLost,
       "a result does not arrive: member " + std::to_string(from) + " has it, member " +
           std::to_string(member_) + " does not",
       out);
}

// --- Members that are gone.

// A copy from a holder that can be reached goes on.
void RootlessAgreement::end(int member, const std::string& reason, RootlessOutput& out) {
  if (stage_ == Stage::kWhole) stop(Cause::kLeader, reason, out);
  if (stage_ == Stage::kCopying && member == holder_) stage_ = Stage::kNoGroup;
  is_ended_ = true;
  reason_ = reason;
}

void RootlessAgreement::give_up(int member, const std::string& reason, RootlessOutput& out) {
  RootlessMessage ended = message(RootlessKind::kEnded);
  ended.generation += stage_ == Stage::kNoGroup ? 1 : 0;
  ended.member = member;
  ended.is_refusal = is_refused_ ? 1 : 0;
  std::snprintf(ended.reason, sizeof ended.reason, "%s", reason.c_str());
  end(member, reason, out);
  // The lost member may be alive: perhaps only this one can't reach it.
  if (rules.end_is_sent) send_to_others(ended, member_, out);
}

void RootlessAgreement::give_up(const std::string& reason, bool is_refusal, RootlessOutput& out) {
  constexpr int kNone = -1;  // it can be reached
  if (is_ended_ && (is_refused_ || !is_refusal)) return;
  is_refused_ = is_refusal;
  give_up(kNone, reason, out);
}

bool RootlessAgreement::awaits(int member) const {
  if (stage_ == Stage::kWhole) return false;
  if (stage_ == Stage::kNoGroup) return !is_finished();  // of each that may lack results
  if (stage_ == Stage::kCopying) return member == holder_;
  return decides() ? !statuses_[static_cast<std::size_t>(member)] : member == 0;
}

void RootlessAgreement::lose(int member, RootlessOutput& out) {
  if (is_ended_ && !(stage_ == Stage::kCopying && member == holder_)) return;
  if (stage_ == Stage::kCopying && member != holder_) return;  // it needs nothing of that one
  if (stage_ == Stage::kNoGroup)
    CEPHEUS_RARE_SITUATION("a member is lost before the next group is up");
  give_up(member, "member " + std::to_string(member) + " can't be reached", out);
}

void RootlessAgreement::take_ended(const RootlessMessage& m, RootlessOutput& out) {
  if (m.is_refusal != 0) is_refused_ = true;
  if (!is_ended_ || m.member == holder_) end(m.member, m.reason, out);
}

// --- Questions.

RootlessAgreement::Path RootlessAgreement::path(std::uint64_t call) const {
  if (call < calls_) return Path::kDone;
  if (is_ended_) {
    const bool may_write = stage_ == Stage::kStopping && rules.error_waits_for_drain;  // the NIC
    return may_write || stage_ == Stage::kCopying ? Path::kWait : Path::kError;
  }
  if (stage_ == Stage::kNoGroup) return call < retry_at_ ? Path::kSaved : Path::kSetUp;
  return stage_ == Stage::kWhole ? Path::kNetwork : Path::kWait;
}

std::uint64_t RootlessAgreement::first_unit(std::uint64_t call) const {
  const bool is_next = call == calls_ && stage_ == Stage::kNoGroup && rules.units_are_final;
  return is_next ? units_ - complete_ : 0;
}

bool RootlessAgreement::is_finished() const {
  if (is_ended_) return stage_ != Stage::kStopping;
  if (stage_ == Stage::kWhole) return true;
  return stage_ == Stage::kNoGroup && (!requests_ || served_ >= *requests_);
}

}  // namespace cepheus::coll
