#include "switch-emulator/engine/mcrdma/ack_merge.h"

#include <algorithm>

namespace cepheus::fabric {

using wire::AckKind;

// All PSNs that are compared here lie within 2^23 of each other: the sender has at most so many packets
// unacknowledged, feedback beyond `sent_` is dropped, and forget_what_all_have() drops older PSNs.

namespace {

// An ACK, an RNR NAK, or a NAK with a code that the IBTA defines.
bool is_defined(const wire::Aeth& aeth) {
  return aeth.kind == AckKind::kAck || aeth.kind == AckKind::kRnrNak || aeth.is_sequence_nak() ||
         aeth.is_fatal_nak();
}

}  // namespace

AckMerge::AckMerge(Ipv4 alias, PortId sender_port, net::CnpPolicy cnps, Duration cnp_window)
    : alias_(alias), port_(sender_port), cnps_(make_cnp_selector(cnps, cnp_window)) {}

std::optional<AckMerge::Answer> AckMerge::set_receivers(std::span<const wire::MrpMember> receivers,
                                                        std::optional<Psn> start) {
  std::vector<Receiver> next;
  for (const wire::MrpMember& one : receivers) {
    const Receiver* before = find(one.host);
    next.push_back(before != nullptr ? *before : Receiver());
    next.back().host = one.host;
    if (before == nullptr && start) {
      next.back().acked = *start - 1;
      next.back().is_known = true;
    }
  }
  // What was counted of whom says nothing under other numbers.
  for (auto last = static_cast<PathNo>(receivers_.size()); last-- > 0;) {
    cnps_->on_path_removed(last, last);
  }
  if (start && !told_) told_ = *start - 1;
  if (start && !sent_) {
    sent_ = *start - 1;
    has_seen_all_ = true;
  }
  const Receiver* const least_before = slowest();
  const std::optional<Psn> before =
      least_before != nullptr ? std::optional(least_before->acked) : std::nullopt;
  const bool is_fewer = next.size() < receivers_.size();
  receivers_ = std::move(next);
  for (std::size_t i = 0; i < receivers_.size(); ++i) cnps_->on_path_added();
  const Receiver* const least = slowest();
  if (!is_fewer || least == nullptr || (before && !after(least->acked, *before))) {
    return std::nullopt;
  }
  return Answer{least->acked, {AckKind::kAck, wire::Aeth::kNoCreditLimit, least->msn}};
}

void AckMerge::on_data(Instant now, Psn psn, bool ack_request) {
  timer_.on_packet(now);
  sample(now, psn, ack_request);
  for (Receiver& one : receivers_) {
    // What a switch sees first after its restart was sent before that, for all it knows.
    const bool is_repeat = !sent_ || !after(psn, *sent_);
    const bool may_lag = !sent_ || lags(one);
    if (is_repeat && may_lag && (!one.is_known || !after(psn, one.acked + 1))) {
      one.unanswered.note(now);
    }
    if (one.is_known && psn == one.acked + 1) one.lacks.reset();
  }
  if (is_asked(psn) && !is_resent(psn)) resent_ = psn;
  if (!sent_ || after(psn, *sent_)) sent_ = psn;
  if (last_ && !after(psn, *last_)) owed_.reset();
  last_ = psn;
  if (ack_request) owed_ = psn;
}

// A round trip is that of a packet that went by once, or once again: which of several an answer is to
// nobody knows (Karn's algorithm).
void AckMerge::sample(Instant now, Psn psn, bool ack_request) {
  if (sample_ && !after(psn, sample_->psn)) sample_.reset();
  const bool is_repeat = sent_ && !after(psn, *sent_);
  const bool is_asked_for = psn == asked_ && !is_resent(psn) && !timer_.has_asked(psn);
  if (is_asked_for || (!is_repeat && !sample_ && ack_request)) sample_ = {psn, now, is_repeat};
}

// Of a repeat, of each who said that it lacked that: others may speak of the first.
void AckMerge::add_round_trip(Instant now, const Receiver& from, Psn acked) {
  if (!sample_ || !sample_->is_repeat || from.said != sample_->psn) return;
  if (before(acked, sample_->psn) || !before(from.acked, sample_->psn)) return;
  timer_.add_round_trip(now - sample_->at);
}

// Feedback that overtook another says less than what is known: it is no reason to know less. False:
// it is such.
bool AckMerge::note_acked(Instant now, Receiver& from, Psn cumulative, std::uint32_t msn) {
  if (from.is_known && before(cumulative, from.acked)) return false;
  add_round_trip(now, from, cumulative);
  if (!from.is_known || after(cumulative, from.acked)) from.lacks.reset();
  from.acked = cumulative;
  from.msn = msn;
  from.is_known = true;
  return true;
}

// Requests that all receivers have answered: 2^23 packets later their PSNs would look new.
void AckMerge::forget_what_all_have(Psn acked) {
  if (owed_ && !before(acked, *owed_)) owed_.reset();
  if (!asked_ || before(acked, asked_to_)) return;
  asked_.reset();
  resent_.reset();
  for (Receiver& one : receivers_) {
    if (one.said && !after(*one.said, asked_to_)) one.said.reset();
  }
}

AckMerge::Taken AckMerge::take(Instant now, const Rules& rules, Ipv4 host, Psn psn,
                               const wire::Aeth& aeth, Answer& answer) {
  Receiver* const from = find(host);
  if (from == nullptr) return Taken::kStranger;
  if (!is_defined(aeth)) return Taken::kMalformed;
  from->heard = (from->heard + 1) & Psn::kMask;
  from->unanswered.clear();
  timer_.on_packet(now);
  const bool is_ack = aeth.kind == AckKind::kAck;
  if (!aeth.is_fatal_nak() && (!sent_ || after(is_ack ? psn : psn - 1, *sent_))) {
    if (has_seen_all_ || !sent_ || !is_ack) return Taken::kUnsent;
    // This switch was restarted. The sender repeats what it sent before that, one packet alone
    // perhaps, and the receiver answers that it has more.
    psn = *sent_;
  }
  const Psn cumulative = is_ack ? psn : psn - 1;
  // An error may be a switch's word for this receiver, which does not know what that has.
  const bool is_news = !aeth.is_fatal_nak() && note_acked(now, *from, cumulative, aeth.msn);
  const Receiver* least = slowest();
  if (least == nullptr) {
    if (rules.sender_unknown) return Taken::kWithheld;
    least = from;
  }
  if (aeth.is_fatal_nak()) {
    answer = {rules.sender_nak_minimum ? least->acked + 1 : psn, aeth};
    return tell(answer);
  }
  if (sample_ && !before(least->acked, sample_->psn)) {
    if (!sample_->is_repeat) timer_.add_round_trip(now - sample_->at);
    sample_.reset();
  }
  forget_what_all_have(least->acked);
  const Psn first = least->acked + 1;
  if (!is_ack) {
    if (!rules.sender_nak_minimum) {
      answer = {psn, aeth};
      return tell(answer);
    }
    if (is_news && take_nak(rules, *from, aeth, first)) return ask(now, aeth, *least, answer);
  }
  if (const auto lacking = due(first)) return ask(now, *lacking, *least, answer);
  if (!is_ack) return Taken::kAbsorbed;
  // A repeat of what the sender has been told is passed: that may have been lost.
  answer = {psn, aeth};
  answer.aeth.value = wire::Aeth::kNoCreditLimit;
  if (!rules.sender_ack_minimum || !after(psn, least->acked)) return tell(answer);
  if (told_ && !after(least->acked, *told_)) return Taken::kAbsorbed;
  answer.psn = least->acked;
  answer.aeth.msn = least->msn;
  return tell(answer);
}

AckMerge::Taken AckMerge::tell(const Answer& answer) {
  const Psn all_have = answer.aeth.kind == AckKind::kAck ? answer.psn : answer.psn - 1;
  if (!told_ || after(all_have, *told_)) told_ = all_have;
  return Taken::kPassed;
}

// Each NAK makes the sender go back and spends one of its retries. So it is asked for a packet once: the
// NAKs of those who are farther away come when it has long been sent again. What comes again with it is
// not asked for; what does not is noted, and asked for when all have what is before it, as a receiver
// says so once only. True: the sender is to be asked at once.
bool AckMerge::take_nak(const Rules& rules, Receiver& from, const wire::Aeth& aeth, Psn first) {
  const bool is_on_its_way = comes(from, aeth.kind);
  from.said = from.acked + 1;
  if (!is_asked(first) || !rules.sender_nak_once) return true;
  if (!is_on_its_way) from.lacks = aeth;
  return false;
}

// Is what follows all that it has acknowledged still to reach it, since the sender was asked for that?
// Who has said that it lacks a packet takes nothing behind it until that comes again: what it lacks
// next was lost when it came again. Others speak of what has been lost before.
bool AckMerge::comes(const Receiver& receiver, AckKind kind) const {
  const Psn lacking = receiver.acked + 1;
  if (!is_asked(lacking)) return false;
  if (!is_resent(lacking)) return true;
  if (kind == AckKind::kRnrNak) return false;
  return lacking == *asked_ || !receiver.said || !is_asked(*receiver.said) ||
         after(*receiver.said, lacking);
}

// What the sender is to be asked for `first` with, if somebody lacks it who gets it no other way: of
// several, with the longest wait.
std::optional<wire::Aeth> AckMerge::due(Psn first) const {
  std::optional<wire::Aeth> longest;
  for (const Receiver& one : receivers_) {
    if (!one.lacks || one.acked + 1 != first) continue;
    if (!longest || longest->kind != AckKind::kRnrNak) {
      longest = one.lacks;
    } else if (one.lacks->kind == AckKind::kRnrNak) {
      longest->value = wire::longer_rnr_timer(longest->value, one.lacks->value);
    }
  }
  return longest;
}

AckMerge::Taken AckMerge::ask(Instant now, const wire::Aeth& aeth, const Receiver& least,
                              Answer& answer) {
  answer = {least.acked + 1, aeth};
  answer.aeth.msn = least.msn;
  asked_ = answer.psn;
  asked_to_ = sent_ && after(*sent_, answer.psn) ? *sent_ : answer.psn;
  resent_.reset();
  for (Receiver& one : receivers_) {
    if (is_asked(one.acked + 1)) one.lacks.reset();
  }
  // Until then nothing is overdue.
  if (aeth.kind == AckKind::kRnrNak) timer_.on_packet(now + wire::rnr_timer_duration(aeth.value));
  return tell(answer);
}

Instant AckMerge::deadline() const {
  if (!owed_) return wire::kNever;
  const Receiver* least = slowest();
  if (least == nullptr || !before(least->acked, *owed_)) return wire::kNever;
  return timer_.deadline(least->acked + 1);
}

// An RNR NAK with the shortest wait: it spends no retry, and NICs that take no second NAK for one
// packet take it.
AckMerge::Answer AckMerge::ask_again(Instant now) {
  constexpr wire::Aeth kSoon{AckKind::kRnrNak, 1};
  const Receiver& least = *slowest();
  timer_.on_asked(now, least.acked + 1);
  Answer answer;
  ask(now, kSoon, least, answer);
  return answer;
}

AckMerge::Taken AckMerge::take_cnp(Instant now, Ipv4 host) {
  const Receiver* from = find(host);
  if (from == nullptr) return Taken::kStranger;
  const auto number = static_cast<PathNo>(from - receivers_.data());
  return cnps_->passes(now, number) ? Taken::kPassed : Taken::kAbsorbed;
}

std::optional<AckMerge::Answer> AckMerge::refuse(wire::NakCode code) const {
  const Receiver* least = slowest();
  if (least == nullptr) return std::nullopt;
  return Answer{least->acked + 1, {AckKind::kNak, static_cast<std::uint8_t>(code), least->msn}};
}

AckMerge::Receiver* AckMerge::find(Ipv4 host) {
  const auto at = std::ranges::find(receivers_, host, &Receiver::host);
  return at == receivers_.end() ? nullptr : &*at;
}

const AckMerge::Receiver* AckMerge::slowest() const {
  const Receiver* least = nullptr;
  for (const Receiver& one : receivers_) {
    if (!one.is_known) return nullptr;
    if (least == nullptr || before(one.acked, least->acked)) least = &one;
  }
  return least;
}

}  // namespace cepheus::fabric
