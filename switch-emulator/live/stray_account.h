// What one host has sent that nobody answers: which frames these are, what they cost, and how long
// the host has to wait for it.
#pragma once

#include <optional>

#include "switch-emulator/live/answered_frames.h"
#include "switch-emulator/live/stray_budget.h"
#include "wire/frame.h"

namespace cepheus::live {

class StrayAccount {
 public:
  // The host sends `frame`. True, and charged, if nobody answers such frames.
  bool take(const wire::Frame& frame);
  // The switch made another copy of a frame that take() charged, or a receiver refused a frame that
  // an answer had paid for.
  void charge(const wire::Frame& frame);
  // A frame of another host reaches this one. It pays for frames to that host.
  void on_answer(const wire::Frame& frame);
  // The host's turn is over. `refused`: all that its port has ever refused. Until when the host has
  // to wait, not after `now` if it need not; unset if nothing has changed.
  std::optional<wire::Instant> settle(wire::Instant now, std::uint64_t refused, bool others_send);

 private:
  AnsweredFrames answered_;
  StrayBudget budget_;
  std::int64_t unpaid_ = 0;  // not charged to the budget yet
  std::uint64_t refused_ = 0;
};

}  // namespace cepheus::live
