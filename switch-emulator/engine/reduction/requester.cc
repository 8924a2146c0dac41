#include "switch-emulator/engine/reduction/requester.h"

#include <algorithm>
#include <cassert>

namespace cepheus::fabric {

using wire::Duration;
using wire::Instant;

bool Requester::on_sent(Instant now) {
  assert(!is_paused());
  const bool is_repeat = next_ < newest_;
  if (!is_repeat && !sample_) sample_ = {next_, now};
  if (next_ == acked_) last_ = now;
  ++next_;
  newest_ = std::max(newest_, next_);
  return is_repeat;
}

Requester::Answer Requester::on_answer(Instant now, std::int64_t end) {
  if (end > static_cast<std::int64_t>(newest_)) return Answer::kUnsent;
  if (end <= static_cast<std::int64_t>(acked_)) return Answer::kStale;
  const Unit to = static_cast<Unit>(end);
  advance(now, to);
  return Answer::kNews;
}

bool Requester::on_implied(Instant now, Unit end) {
  assert(end <= newest_);
  if (end <= acked_) return false;
  advance(now, end);
  return true;
}

void Requester::advance(Instant now, Unit end) {
  allowed_ += end - acked_;
  acked_ = end;
  next_ = std::max(next_, end);
  last_ = now;
  if (sample_ && sample_->unit < end) {
    trip_.add(now - sample_->at);
    sample_.reset();
    doublings_ = 0;
  }
  doublings_ = trip_.is_known() ? std::min(doublings_, kKeptDoublings) : std::uint8_t{0};
  if (is_idle()) paused_until_.reset();
}

void Requester::slow_down() {
  const Unit before = acked_ < recovered_ ? std::min(allowed_, newest_ - acked_) : newest_ - acked_;
  allowed_ = std::max<Unit>(before / 2, 1);
  recovered_ = newest_;
}

Duration Requester::first_wait(Duration floor) const {
  return trip_.is_known() ? trip_.first_wait(floor) : std::max(floor, kFirstWait);
}

bool Requester::on_nak(Instant now, Duration floor) {
  if (repeated_ == acked_ && now < repeated_at_ + first_wait(floor)) return false;
  slow_down();
  go_back();
  repeated_ = acked_;
  repeated_at_ = now;
  return true;
}

Instant Requester::due(Duration floor, Instant stood, Duration longest) const {
  if (is_idle()) return wire::kNever;
  if (paused_until_) return *paused_until_;
  const Duration first = first_wait(floor);
  const Duration wait = std::min(first * (1 << doublings_), std::max(first, longest));
  return std::max(last_, stood) + std::min(wait, kLongestWait);
}

void Requester::on_due(Instant now) {
  const bool is_overdue = !paused_until_;
  if (is_overdue) slow_down();
  paused_until_.reset();
  go_back();
  repeated_ = acked_;
  repeated_at_ = last_ = now;
  if (!is_overdue) return;
  if (doublings_ < kMostDoublings) ++doublings_;
  if (silent_ < UINT8_MAX) ++silent_;
}

void Requester::jump(Unit units) {
  assert(is_idle());
  acked_ += units;
  next_ = newest_ = acked_;
  sample_.reset();
}

}  // namespace cepheus::fabric
