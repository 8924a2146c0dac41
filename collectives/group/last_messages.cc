#include "collectives/group/last_messages.h"

#include "collectives/core/rules.h"

namespace cepheus::coll {

void LastMessages::start() {
  is_started_ = true;
  ControlMessage last{};
  last.kind = ControlMessage::Kind::kLast;
  (void)link_.send(Action::kEveryone, last);
  for (int member = 0; member < team_.size(); ++member) {
    if (member != team_.self()) reports_.push_back({member, 0});
  }
  for (const Report& each : reports_)
    (void)Messages::post(&kNoUnit, sizeof kNoUnit, each.member, Tag::kReady, team_);
  receive_reports();
}

// A message that can't be received (the job is coming down) is not waited for.
void LastMessages::receive_reports() {
  std::erase_if(reports_, [](const Report& each) { return each.unit == kNoUnit; });
  for (Report& each : reports_) {
    const Code rc =
        messages_.receive(&each.unit, sizeof each.unit, each.member, Tag::kReady, team_);
    if (rc != Code::kDone) each.unit = kNoUnit;
  }
}

bool LastMessages::has_all_control() {
  int from = 0;
  ControlMessage message{};
  while (link_.receive(from, message)) (void)take(message);
  return controls_ + 1 >= team_.size() || link_.open() != Code::kDone;
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

bool LastMessages::progress() {
  if (!rules.rest_is_received) return true;
  if (!is_started_) start();
  const bool has_control = has_all_control();
  return has_all_reports() && has_control;
}

}  // namespace cepheus::coll
