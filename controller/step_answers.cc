#include "controller/step_answers.h"

#include <algorithm>

#include "wire/situation.h"

namespace cepheus::mrp {

using wire::SenderGroupMessage;

void StepAnswers::add_attempt(std::uint16_t seq) {
  if (attempts_.size() == kAttemptsKept) attempts_.erase(attempts_.begin());
  attempts_.push_back({seq, 0, {}});
}

bool StepAnswers::take(std::size_t receiver, std::uint16_t seq, std::uint64_t share) {
  const auto attempt = std::ranges::find(attempts_, seq, &Attempt::seq);
  if (attempt == attempts_.end() || share > SenderGroupMessage::kWholeShare) return false;
  answered_.set(receiver);
  attempt->answered.set(receiver);
  // An answer that the network doubled counts twice: then a path may lack the rule, as after a
  // switch's restart, until the next INSTALL, and the sender's switch lets nothing complete.
  attempt->share = std::min(SenderGroupMessage::kWholeShare, attempt->share + share);
  return true;
}

bool StepAnswers::is_complete(std::uint16_t seq, std::size_t receivers) const {
  const auto attempt = std::ranges::find(attempts_, seq, &Attempt::seq);
  const bool is_whole = attempt != attempts_.end() &&
                        attempt->share == SenderGroupMessage::kWholeShare &&
                        attempt->answered.count() == receivers;
  const bool has_done = attempts_.size() >= kAttemptsThatDo && answered_.count() == receivers;
  if (has_done && !is_whole)
    CEPHEUS_SITUATION("no attempt came through whole, and four together did");
  return is_whole || has_done;
}

std::vector<wire::MrpMember> StepAnswers::missing(
    std::span<const wire::MrpMember> receivers) const {
  std::vector<wire::MrpMember> list;
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    if (!answered_[i]) list.push_back(receivers[i]);
  }
  return list;
}

}  // namespace cepheus::mrp
