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
  ++next_;
  newest_ = std::max(newest_, next_);
  last_ = now;
  return is_repeat;
}

Requester::Answer Requester::on_answer(Instant now, std::int64_t end) {
  if (end > static_cast<std::int64_t>(newest_)) return Answer::kUnsent;
  if (end <= static_cast<std::int64_t>(acked_)) return Answer::kStale;
  const Unit to = static_cast<Unit>(end);
  if (sample_ && sample_->unit < to) trip_.add(now - sample_->at);
  advance(now, to);
  return Answer::kNews;
}

void Requester::on_implied(Instant now, Unit end) {
  assert(end <= newest_);
  if (end > acked_) advance(now, end);
}

void Requester::advance(Instant now, Unit end) {
  acked_ = end;
  next_ = std::max(next_, end);
  last_ = now;
  doublings_ = 0;
  if (sample_ && sample_->unit < end) sample_.reset();
  if (is_idle()) paused_until_.reset();
}

Instant Requester::due(Duration floor) const {
  if (is_idle()) return wire::kNever;
  if (paused_until_) return *paused_until_;
  const Duration first = trip_.is_known() ? trip_.first_wait(floor) : std::max(floor, kFirstWait);
  return last_ + std::min<Duration>(first * (1 << doublings_), kLongestWait);
}

bool Requester::on_due(Instant now) {
  const bool is_overdue = !paused_until_;
  paused_until_.reset();
  go_back();
  last_ = now;
  if (!is_overdue) return false;
  if (doublings_ < kMostDoublings) ++doublings_;
  if (silent_ < UINT8_MAX) ++silent_;
  return true;
}

void Requester::jump(Unit units) {
  assert(is_idle());
  acked_ += units;
  next_ = newest_ = acked_;
  sample_.reset();
}

}  // namespace cepheus::fabric
