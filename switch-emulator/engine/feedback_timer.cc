#include "switch-emulator/engine/feedback_timer.h"

#include <algorithm>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/one_source.h"
#include "wire/times.h"

namespace cepheus::fabric {
namespace {

constexpr Duration kShortPause = std::chrono::microseconds(10);  // of a switch's own request

bool is_slowest(const Turn& turn, PathNo path) {
  return path != turn.source() && turn.acked(path) == turn.min();
}

}  // namespace

void RoundTrip::add(Duration measured) {
  constexpr std::int64_t kMost = 1'000'000'000;  // so that sums of a few fit into 32 bits
  const auto sample = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(std::chrono::nanoseconds(measured).count(), 1, kMost));
  if (!is_known() || is_guess_) {
    mean_ns_ = sample;
    deviation_ns_ = sample / 2;
    is_guess_ = false;
  } else {
    const std::uint32_t error = std::max(mean_ns_, sample) - std::min(mean_ns_, sample);
    deviation_ns_ = deviation_ns_ - deviation_ns_ / 4 + error / 4;
    mean_ns_ = mean_ns_ - mean_ns_ / 8 + sample / 8;
    mean_ns_ = std::max(mean_ns_, 1u);
  }
  doublings_ = 0;
}

void RoundTrip::guess(Duration most) {
  if (is_known() && (!is_guess_ || most >= std::chrono::nanoseconds(mean_ns_))) return;
  const std::uint8_t doublings = doublings_;
  add(most);
  doublings_ = doublings;
  is_guess_ = true;
}

Duration RoundTrip::first_wait(Duration floor) const {
  const auto spread = std::chrono::nanoseconds(std::int64_t{4} * deviation_ns_);
  return std::chrono::nanoseconds(std::int64_t{2} * mean_ns_) + std::max<Duration>(floor, spread);
}

Duration RoundTrip::wait(Duration floor) const { return first_wait(floor) * (1 << doublings_); }

void FeedbackTimer::guess(PathNo path, Duration most, bool to_all) {
  most = std::min(most, kLongestSilence / 4);  // registration may wait for slow members
  paths_[path].to_source.guess(most);
  if (to_all) paths_[path].trip.guess(most);
}

void FeedbackTimer::on_path_removed(PathNo gone, PathNo last) {
  paths_[gone] = paths_[last];
  paths_.pop_back();
  is_sooner_ = true;
}

void FeedbackTimer::reset() {
  sample_.reset();
  owed_.reset();
  requested_.reset();
  sent_nak_.reset();
  burst_.reset();
  requests_ = 0;
  is_sooner_ = true;
  for (PathTimer& path : paths_) path.is_unready = false;
}

void FeedbackTimer::on_data(Instant now, PathNo from, Psn psn, bool ack_request, bool is_new) {
  last_ = now;
  if (requested_ && !after(psn, *requested_)) requested_.reset();
  if (sent_nak_ && !after(psn, sent_nak_->psn)) {
    const SentNak& sent = *sent_nak_;
    RoundTrip& trip = paths_[from].to_source;
    if (!sent.is_paused && sent.naks == 1) trip.add(now - sent.last - sent.pause);
    if (!sent.is_paused && sent.naks == 2) trip.guess(now - sent.first);
    sent_nak_.reset();
    is_sooner_ = true;
  }
  if (is_new) {
    if (!burst_) burst_ = {now, now};
    burst_->end = now;
    newest_ = psn;
  }
  if (!is_new && sample_ && !after(psn, sample_->psn)) sample_.reset();
  if (!ack_request) return;
  if (is_new && !sample_) sample_ = {psn, now};
  if (!owed_) is_sooner_ = true;
  if (!owed_ || after(psn, *owed_)) owed_ = psn;
}

void FeedbackTimer::on_answer(Instant now, PathNo path, Psn before_it, Psn acked, bool is_rnr) {
  last_ = now;
  PathTimer& from = paths_[path];
  // Some NICs send NAK(e) after RNR(e), too. That acknowledges nothing, and the receiver still
  // waits.
  if (is_rnr || acked != before_it) from.is_unready = is_rnr;
  from.answered = now;
  // Repeated packets are not measured. If only a measurement ended the back-off, one loss after the
  // other would be awaited with the longest wait.
  // Moved, the path is one of the slowest only if the minimum has risen, too: on_min().
  if (acked != before_it) {
    from.trip.end_back_off();
    from.is_proven = true;
  }
  is_sooner_ |= acked == before_it;
  if (!sample_ || !before(before_it, sample_->psn) || before(acked, sample_->psn)) return;
  from.trip.add(now - sample_->at);
}

bool FeedbackTimer::on_min(Psn min) {
  is_sooner_ |= std::exchange(min_, min) != min;
  if (owed_ && !before(min, *owed_)) owed_.reset();
  if (sample_ && !before(min, sample_->psn)) sample_.reset();
  if (sent_nak_ && !before(min, sent_nak_->psn)) sent_nak_.reset();
  if (burst_ && !before(min, newest_)) burst_.reset();
  const bool was_in_vain = requested_ && !before(min, *requested_);
  if (was_in_vain) requested_.reset();
  return was_in_vain;
}

void FeedbackTimer::on_nak(Instant now, Psn psn, Duration pause) {
  const bool is_again = sent_nak_ && sent_nak_->psn == psn;
  const bool is_paused = pause > kShortPause || (is_again && sent_nak_->is_paused);
  const int naks = is_again ? sent_nak_->naks + 1 : 1;
  sent_nak_ = {psn, is_again ? sent_nak_->first : now, now, pause, is_paused, naks};
}

Duration FeedbackTimer::wait_of(const PathTimer& path, Duration floor, bool patient) const {
  if (!patient) return path.trip.first_wait(floor);
  const Duration wait = path.trip.wait(floor);
  if (!burst_ || path.answered > burst_->begin) return wait;
  return std::max(wait, std::min(kSlowerReceiver * (burst_->end - burst_->begin), kLongestSilence));
}

// A request for the packet of the slowest paths repeats the packets of the others, too.
Instant FeedbackTimer::next(const Call& call, const OneSource& group) const {
  const Turn& turn = group.turn;
  const Duration floor = call.config.feedback_wait;
  const bool patient = call.rules().request_limit;
  Instant due = wire::kNever;
  const Psn min = turn.min();
  if (turn.source() == kNoPath || !is_owed(min)) return due;
  if (patient && (requests_for(min + 1) == kMostRequests || awaits_receiver(turn))) return due;
  for (PathNo i = 0; i < paths_.size(); ++i) {
    if (!is_slowest(turn, i) || !paths_[i].trip.is_known()) continue;
    const bool is_once = call.rules().request_unknown_once && !paths_[i].is_proven;
    if (is_once && requests_for(min + 1) >= kMostOfUnknown) continue;
    const net::PauseState* const pause = call.pauses[group.tree.paths[i].port.value()];
    const Duration least = pause == nullptr ? floor : std::max(floor, kLongestSilence);
    const Instant since = pause == nullptr ? last_ : std::max(last_, pause->until());
    due = std::min(due, since + wait_of(paths_[i], least, patient));
  }
  if (due == wire::kNever) return due;
  // Feedback that has gone to the source brings the next packets, or the repeat, after its round
  // trip.
  const RoundTrip& trip = paths_[turn.source()].to_source;
  if (!trip.is_known()) return due;
  const Duration source = std::min(trip.first_wait(floor), std::max(kLongestSilence, floor));
  due = std::max(due, last_ + source);
  return sent_nak_ ? std::max(due, sent_nak_->last + sent_nak_->pause + source) : due;
}

bool FeedbackTimer::awaits_receiver(const Turn& turn) const {
  for (PathNo i = 0; i < paths_.size(); ++i) {
    if (paths_[i].is_unready && is_slowest(turn, i)) return true;
  }
  return false;
}

void FeedbackTimer::on_request(Instant now, const Turn& turn) {
  const Psn first = turn.min() + 1;
  requests_ = requests_for(first) + 1;
  first_ = first;
  requested_ = first;
  last_ = now;
  for (PathNo i = 0; i < paths_.size(); ++i) {
    if (is_slowest(turn, i)) paths_[i].trip.back_off();
  }
}

}  // namespace cepheus::fabric
