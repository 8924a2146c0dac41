// Each call of progress() goes on as far as messages allow; states never go back. LASTs that were
// sent are counted, and each LAST_RECEIVED takes one off. A member's reports are received until its
// kNoUnit. A message that can't be sent or received is not waited for: the job is coming down.
#include "collectives/group/tear_down.h"

#include "collectives/core/rules.h"
#include "wire/situation.h"

namespace cepheus::coll {

using Kind = ControlMessage::Kind;

bool TearDown::take(int from, const ControlMessage& message) {
  if (message.kind == Kind::kLast) requests_.push_back({from, message.value != 0});
  if (message.kind == Kind::kLastReceived) --unanswered_;
  return message.kind == Kind::kLast || message.kind == Kind::kLastReceived;
}

void TearDown::answer() {
  ControlMessage received{};
  received.kind = Kind::kLastReceived;
  for (const LastRequest& each : requests_) {
    (void)link_.send(each.by, received);
    if (!each.wants_report) continue;
    CEPHEUS_SITUATION("a communicator ends, and a report of readiness was left over");
    (void)Messages::post(&kNoUnit, sizeof kNoUnit, each.by, Tag::kReady, team_);
  }
  requests_.clear();
}

// A message that can't be sent (the job is coming down) has no answer.
void TearDown::request_reports(const std::vector<bool>& may_have_reported) {
  ControlMessage last{};
  last.kind = Kind::kLast;
  for (int member = 0; member < team_.size(); ++member) {
    const bool wants_report =
        !may_have_reported.empty() && may_have_reported[static_cast<std::size_t>(member)];
    if (!wants_report && !link_.has_sent_to(member)) continue;
    last.value = wants_report ? 1 : 0;
    if (link_.send(member, last) != Code::kDone) continue;
    ++unanswered_;
    if (wants_report) reports_.push_back({member, 0});
  }
  receive_reports();
}

void TearDown::receive_reports() {
  std::erase_if(reports_, [](const Report& each) { return each.unit == kNoUnit; });
  for (Report& each : reports_) {
    const Code rc =
        messages_.receive(&each.unit, sizeof each.unit, each.member, Tag::kReady, team_);
    if (rc != Code::kDone) each.unit = kNoUnit;
  }
}

bool TearDown::has_all_reports() {
  Code error = Code::kDone;
  while (!reports_.empty()) {
    if (!messages_.test(error)) return false;
    if (error != Code::kDone) reports_.clear();
    receive_reports();
  }
  return true;
}

// A message that can't be sent or received (the job is coming down) is not waited for.
void TearDown::gather() {
  bytes_.assign(static_cast<std::size_t>(team_.is_leader() ? team_.size() : 1), 0);
  if (!team_.is_leader())
    return (void)messages_.send(&bytes_[0], 1, Team::kLeader, Tag::kDone, team_);
  for (int member = 1; member < team_.size(); ++member)
    (void)messages_.receive(&bytes_[static_cast<std::size_t>(member)], 1, member, Tag::kDone,
                            team_);
}

void TearDown::release() {
  if (!team_.is_leader())
    return (void)messages_.receive(&bytes_[0], 1, Team::kLeader, Tag::kRelease, team_);
  for (int member = 1; member < team_.size(); ++member)
    (void)messages_.send(&bytes_[0], 1, member, Tag::kRelease, team_);
}

bool TearDown::progress(bool is_drained, const std::vector<bool>& may_have_reported) {
  if (is_drained && rules.rest_is_received) answer();
  if (state_ == State::kDraining && is_drained) {
    if (rules.rest_is_received) request_reports(may_have_reported);
    state_ = State::kLastReports;
  }
  if (state_ == State::kLastReports && is_drained && has_all_reports() && unanswered_ == 0) {
    if (!rules.release_after_all) return true;
    gather();
    state_ = State::kGathering;
  }
  Code error = Code::kDone;
  if (state_ == State::kGathering && messages_.test(error)) {
    release();
    state_ = State::kReleasing;
  }
  if (state_ == State::kReleasing && messages_.test(error)) state_ = State::kDone;
  return state_ == State::kDone;
}

}  // namespace cepheus::coll
