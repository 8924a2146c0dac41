#include "collectives/group/last_messages.h"

#include "collectives/core/rules.h"

namespace cepheus::coll {

using Kind = ControlMessage::Kind;

bool LastMessages::take(int from, const ControlMessage& message) {
  if (message.kind == Kind::kLast) requests_.push_back({from, message.value != 0});
  if (message.kind == Kind::kLastReceived) --unanswered_;
  return message.kind == Kind::kLast || message.kind == Kind::kLastReceived;
}

void LastMessages::answer() {
  ControlMessage received{};
  received.kind = Kind::kLastReceived;
  for (const LastRequest& each : requests_) {
    (void)link_.send(each.by, received);
    if (each.wants_report)
      (void)Messages::post(&kNoUnit, sizeof kNoUnit, each.by, Tag::kReady, team_);
  }
  requests_.clear();
}

// A message that can't be sent (the job is coming down) has no answer.
void LastMessages::start(const std::vector<bool>& may_have_reported) {
  is_started_ = true;
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

void LastMessages::receive_reports() {
  std::erase_if(reports_, [](const Report& each) { return each.unit == kNoUnit; });
  for (Report& each : reports_) {
    const Code rc =
        messages_.receive(&each.unit, sizeof each.unit, each.member, Tag::kReady, team_);
    if (rc != Code::kDone) each.unit = kNoUnit;
  }
}

bool LastMessages::has_all_reports() {
  Code error = Code::kDone;
  while (!reports_.empty()) {
    if (!messages_.test(error)) return false;
    if (error != Code::kDone) reports_.clear();
    receive_reports();
  }
  return true;
}

bool LastMessages::progress(const std::vector<bool>& may_have_reported) {
  if (!rules.rest_is_received) return true;
  answer();
  if (!is_started_) start(may_have_reported);
  return has_all_reports() && unanswered_ == 0;
}

}  // namespace cepheus::coll
