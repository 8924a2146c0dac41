// Each path has an estimate of its round trip (RoundTrip), measured on one packet with AckReq that
// was not repeated. next() is the earliest time at which a slowest path's answer is overdue, but
// never before the source could have answered the last feedback. A request doubles the path's wait;
// progress ends that. Waits for the source and for queues are bounded by kLongestSilence, a path's
// own by six doublings, and requests for one packet by Requests::kMost. After a receiver's RNR NAK
// there are two at most, if the source does not repeat.
#include "switch-emulator/engine/group/feedback_timer.h"

#include <algorithm>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group/group.h"
#include "wire/situation.h"

namespace cepheus::fabric {
namespace {

bool is_slowest(const Turn& turn, PathNo path) {
  return path != turn.source() && turn.acked(path) == turn.min();
}

}  // namespace

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
  burst_.reset();
  is_sooner_ = true;
  for (PathTimer& path : paths_) path.is_unready = false;
}

void FeedbackTimer::on_data(Instant now, PathNo from, Psn psn, bool ack_request, bool is_new,
                            const std::optional<Naks::Repeat>& repeat) {
  last_ = data_at_ = now;
  is_sooner_ |= repeat.has_value();
  if (repeat && repeat->trip) {
    RoundTrip& trip = paths_[from].to_source;
    repeat->is_exact ? trip.add(*repeat->trip) : trip.guess(*repeat->trip);
  }
  if (is_new) {
    if (!burst_) burst_ = {now, now};
    burst_->end = now;
    newest_ = psn;
  }
  if (!is_new && sample_ && !after(psn, sample_->psn)) {
    CEPHEUS_SITUATION("the packet that measures a round trip is repeated");
    sample_.reset();
  }
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
  if (!is_rnr && from.is_unready) CEPHEUS_SITUATION("a path sends NAK behind its RNR NAK");
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
  const std::int32_t n = distance(before_it, acked);
  from.at_once -= (from.at_once + 7) / 8;
  if (n < from.at_once) return;
  from.at_once = n;
  from.took = burst_ ? burst_->end - burst_->begin : Duration{};
}

void FeedbackTimer::on_min(Psn min) {
  is_sooner_ |= std::exchange(min_, min) != min;
  if (owed_ && !before(min, *owed_)) owed_.reset();
  if (sample_ && !before(min, sample_->psn)) sample_.reset();
  if (burst_ && !before(min, newest_)) burst_.reset();
}

// A request for the packet of the slowest paths repeats the packets of the others, too.
Instant FeedbackTimer::next(const Call& call, const Group& group) const {
  const Turn& turn = group.turn;
  const Duration floor = call.config.feedback_wait;
  Instant due = wire::kNever;
  const Psn min = turn.min();
  if (!is_on_ || turn.source() == kNoPath || !is_owed(min)) return due;
  const int requests = turn.naks().requests(min + 1);
  if (is_patient_ && requests == Requests::kMost) {
    CEPHEUS_SITUATION("a switch has requested one packet as often as it may");
    return due;
  }
  for (PathNo i = 0; i < paths_.size(); ++i) {
    const PathTimer& path = paths_[i];
    if (!is_slowest(turn, i)) continue;
    if (is_patient_ && path.is_unready) return next_after_rnr(group, floor);
    if (!path.trip.is_known() || (!path.is_proven && requests >= most_of_unknown_)) continue;
    const auto pause_end = call.pause_end(group.tree.paths[i].port);
    const Duration least = pause_end ? std::max(floor, kLongestSilence) : floor;
    const Instant since = pause_end ? std::max(last_, *pause_end) : last_;
    Duration wait = is_patient_ ? path.trip.wait(least) : path.trip.first_wait(least);
    if (is_patient_ && burst_ && path.answered <= burst_->begin) {
      // Round trips contain a queue that is no longer than a measured one. As many packets that come
      // much faster have a longer queue.
      const Duration filled = burst_->end - burst_->begin;
      if (distance(min, newest_) > path.at_once || filled < path.took / 2) {
        CEPHEUS_SITUATION("a burst waits in a longer queue than any that was measured");
        wait = std::max(wait, std::min<Duration>(kSlowerReceiver * filled, kLongestSilence));
      }
    }
    due = std::min(due, since + wait);
  }
  if (due == wire::kNever) return due;
  // Feedback that has gone to the source brings the next packets, or the repeat, after its round
  // trip.
  const auto source = source_wait(turn, floor);
  if (!source) return due;
  due = std::max(due, last_ + *source);
  const auto repeat_begins = turn.naks().repeat_begins();
  return repeat_begins ? std::max(due, *repeat_begins + *source) : due;
}

std::optional<Duration> FeedbackTimer::source_wait(const Turn& turn, Duration floor) const {
  const RoundTrip& trip = paths_[turn.source()].to_source;
  if (!trip.is_known()) return std::nullopt;
  const Duration known = is_patient_ ? trip.wait(floor) : trip.first_wait(floor);
  return std::min(known, std::max(kLongestSilence, floor));
}

// The receiver sends no second RNR NAK for the packet. If the first one was lost on the way to the
// source, nothing comes from there. Only the source's own switch knows all waits of the source. NICs
// keep long waits roughly, so half of the wait is added.
Instant FeedbackTimer::next_after_rnr(const Group& group, Duration floor) const {
  const Turn& turn = group.turn;
  const auto repeat_begins = turn.naks().repeat_begins();
  if (!repeat_begins || !group.tree.paths[turn.source()].is_host ||
      turn.naks().requests(turn.min() + 1) >= most_after_rnr_) {
    return wire::kNever;
  }
  const Duration longest = std::max(kLongestSilence, floor);
  const Duration wait = source_wait(turn, floor).value_or(longest);
  return std::max(last_, *repeat_begins) + std::max(wait, turn.naks().pause() / 2);
}

bool FeedbackTimer::awaits_receiver(const Turn& turn) const {
  for (PathNo i = 0; i < paths_.size(); ++i) {
    if (paths_[i].is_unready && is_slowest(turn, i)) return true;
  }
  return false;
}

bool FeedbackTimer::may_have_lost_rnr(Instant now, const Turn& turn) const {
  const auto repeat_begins = turn.naks().repeat_begins();
  return is_patient_ && most_after_rnr_ > 0 && repeat_begins && *repeat_begins <= now;
}

void FeedbackTimer::on_request(Instant now, const Turn& turn) {
  // Nothing tells a lost repeat from a source that is farther away than is known.
  if (turn.naks().is_sent(turn.min() + 1)) {
    CEPHEUS_SITUATION("a switch requests a packet after a NAK for it");
    paths_[turn.source()].to_source.back_off();
  }
  last_ = now;
  for (PathNo i = 0; i < paths_.size(); ++i) {
    if (is_slowest(turn, i)) paths_[i].trip.back_off();
  }
}

}  // namespace cepheus::fabric
