// The receivers' acknowledgements merge to the least one, as in feedback.cc, but without turns: one
// sender, 16 receivers at most, each with its own state, and no tree of switches.
//
//   kPassed    goes to the sender: the least ACK, a NAK that is due, an error
//   kAbsorbed  is contained in an earlier or later answer
//   kWithheld  a restarted switch does not know all receivers yet
//   kUnsent    is about packets that this switch has not seen
//
// A NAK makes the sender go back, so a packet gets one request: receivers whose packet the repeat
// brings need none, and others wait until all have the packets before theirs. A packet without an
// answer is requested, too, Requests::kMost times at most: after some of the longest recent round
// trips (LongestTrip, measured by Karn's rule), each time twice as many.
#include "switch-emulator/engine/mcrdma/ack_merge.h"

#include "wire/situation.h"

namespace cepheus::fabric {

using wire::AckKind;

namespace {

// An ACK, an RNR NAK, or a NAK with a code that the IBTA defines.
bool is_defined(const wire::Aeth& aeth) {
  return aeth.kind == AckKind::kAck || aeth.kind == AckKind::kRnrNak || aeth.is_sequence_nak() ||
         aeth.is_fatal_nak();
}

}  // namespace

AckMerge::AckMerge(Ipv4 alias, PortId sender_port, const Rules& rules, Duration cnp_window)
    : alias_(alias),
      port_(sender_port),
      acks_minimum_(rules.sender_ack_minimum),
      naks_minimum_(rules.sender_nak_minimum),
      awaits_unknown_(rules.sender_unknown),
      is_once_(rules.sender_nak_once),
      requests_again_(rules.sender_request_again),
      cnps_(make_cnp_selector(rules.cnp_policy, cnp_window)) {}

std::optional<AckMerge::Answer> AckMerge::set_receivers(Instant now,
                                                        std::span<const wire::MrpMember> receivers,
                                                        std::optional<Psn> start, bool sees_all) {
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
  // Counts by path are wrong under new path numbers.
  if (!std::ranges::equal(receivers_, next, {}, &Receiver::host, &Receiver::host)) {
    for (auto last = static_cast<PathNo>(receivers_.size()); last-- > 0;) {
      cnps_->on_path_removed(last, last);
    }
    for (std::size_t i = 0; i < next.size(); ++i) cnps_->on_path_added();
  }
  if (start && !acknowledged_) acknowledged_ = *start - 1;
  if (start && !sent_) {
    sent_ = *start - 1;
    has_seen_all_ = sees_all;
  }
  const Receiver* const least_before = slowest();
  const std::optional<Psn> before =
      least_before != nullptr ? std::optional(least_before->acked) : std::nullopt;
  const bool is_fewer = next.size() < receivers_.size();
  receivers_ = std::move(next);
  const Receiver* const least = slowest();
  if (!is_fewer || least == nullptr || (before && !after(least->acked, *before))) {
    return std::nullopt;
  }
  CEPHEUS_RARE_SITUATION("a sender's last lagging receiver is evicted");
  Answer answer{least->acked, {AckKind::kAck, wire::Aeth::kNoCreditLimit, least->msn}};
  forget_what_all_have(least->acked);
  if (const auto lacking = due(least->acked + 1)) request(now, *lacking, *least, answer);
  return answer;
}

void AckMerge::on_data(Instant now, Psn psn, bool ack_request) {
  note_packet(now);
  sample(now, psn, ack_request);
  for (Receiver& one : receivers_) {
    // The first packet after a restart of this switch may be a repeat of one before it.
    const bool is_repeat = !sent_ || !after(psn, *sent_);
    const bool may_lag = !sent_ || lags(one);
    if (is_repeat && may_lag && (!one.is_known || !after(psn, one.acked + 1))) {
      one.unanswered.note(now);
    }
    if (one.is_known && psn == one.acked + 1) one.lacks.reset();
  }
  go_back_.on_data(psn);
  if (!sent_ || after(psn, *sent_)) sent_ = psn;
  if (last_ && !after(psn, *last_)) owed_.reset();
  last_ = psn;
  if (ack_request) owed_ = psn;
}

// A round trip is that of a packet that passed once, or was repeated once. Otherwise an answer's
// packet is unknown (Karn's algorithm).
void AckMerge::sample(Instant now, Psn psn, bool ack_request) {
  if (sample_ && !after(psn, sample_->psn)) sample_.reset();
  const bool is_repeat = sent_ && !after(psn, *sent_);
  const bool is_first_repeat =
      go_back_.begins_at(psn) && !go_back_.has_resent(psn) && requests_.count(psn) == 0;
  if (is_first_repeat || (!is_repeat && !sample_ && ack_request)) sample_ = {psn, now, is_repeat};
}

// For a repeat, only feedback from a receiver that lacked it counts: others may answer the first
// copy.
void AckMerge::add_round_trip(Instant now, const Receiver& from, Psn acked) {
  if (!sample_ || !sample_->is_repeat || from.last_nak != sample_->psn) return;
  if (before(acked, sample_->psn) || !before(from.acked, sample_->psn)) return;
  CEPHEUS_SITUATION("a repeat measures a sender's round trip");
  trip_.add(now - sample_->at);
}

// Feedback that later feedback has overtaken acknowledges less, and changes nothing. Then it
// returns false.
bool AckMerge::note_acked(Instant now, Receiver& from, Psn cumulative, std::uint32_t msn) {
  if (from.is_known && before(cumulative, from.acked)) {
    CEPHEUS_SITUATION("feedback to a sender is overtaken by later feedback");
    return false;
  }
  add_round_trip(now, from, cumulative);
  if (!from.is_known || after(cumulative, from.acked)) from.lacks.reset();
  from.acked = cumulative;
  from.msn = msn;
  from.is_known = true;
  return true;
}

// Deletes requests that all receivers have answered: 2^23 packets later their PSNs would look new.
void AckMerge::forget_what_all_have(Psn acked) {
  if (owed_ && !before(acked, *owed_)) owed_.reset();
  if (!go_back_.is_on() || before(acked, go_back_.to())) return;
  for (Receiver& one : receivers_) {
    if (one.last_nak && !after(*one.last_nak, go_back_.to())) one.last_nak.reset();
  }
  go_back_.end();
}

AckMerge::Taken AckMerge::take(Instant now, Ipv4 host, Psn psn, const wire::Aeth& aeth,
                               Answer& answer) {
  Receiver* const from = find(host);
  if (from == nullptr) return Taken::kStranger;
  if (!is_defined(aeth)) return Taken::kMalformed;
  from->packets = (from->packets + 1) & Psn::kMask;
  from->unanswered.clear();
  note_packet(now);
  const bool is_ack = aeth.kind == AckKind::kAck;
  // The first packet that a restarted switch has not seen again may be lacking.
  const Psn furthest = is_ack || has_seen_all_ ? psn : psn - 1;
  if (!aeth.is_fatal_nak() && (!sent_ || after(furthest, *sent_))) {
    if (has_seen_all_ || !sent_ || !is_ack) return Taken::kUnsent;
    // This switch has restarted. The sender repeats packets from before that, perhaps only one, and
    // the receiver acknowledges later ones.
    CEPHEUS_SITUATION("a receiver acknowledges more than its restarted switch has seen");
    psn = *sent_;
  }
  const Psn cumulative = is_ack ? psn : psn - 1;
  // An error may come from a switch in this receiver's name, which does not know the receiver's
  // PSN.
  const bool is_news = !aeth.is_fatal_nak() && note_acked(now, *from, cumulative, aeth.msn);
  const Receiver* least = slowest();
  if (least == nullptr) {
    if (awaits_unknown_) {
      CEPHEUS_SITUATION("a restarted switch keeps an ACK back until it knows all receivers");
      return Taken::kWithheld;
    }
    least = from;
  }
  if (aeth.is_fatal_nak()) {
    CEPHEUS_RARE_SITUATION("a receiver's error ends a sender's connection");
    answer = {naks_minimum_ ? least->acked + 1 : psn, aeth};
    return pass(answer);
  }
  if (sample_ && !before(least->acked, sample_->psn)) {
    if (!sample_->is_repeat) trip_.add(now - sample_->at);
    sample_.reset();
  }
  forget_what_all_have(least->acked);
  const Psn first = least->acked + 1;
  if (!is_ack) {
    if (!naks_minimum_) {
      answer = {psn, aeth};
      return pass(answer);
    }
    const Nak nak = Nak::from(psn, aeth);
    if (is_news && take_nak(*from, nak, first)) return request(now, nak, *least, answer);
  }
  if (const auto lacking = due(first)) return request(now, *lacking, *least, answer);
  if (!is_ack) return Taken::kAbsorbed;
  // Passes a repeat of the last acknowledgement, because that may have been lost.
  answer = {psn, aeth};
  answer.aeth.value = wire::Aeth::kNoCreditLimit;
  if (!acks_minimum_ || !after(psn, least->acked)) return pass(answer);
  if (acknowledged_ && !after(least->acked, *acknowledged_)) return Taken::kAbsorbed;
  answer.psn = least->acked;
  answer.aeth.msn = least->msn;
  return pass(answer);
}

AckMerge::Taken AckMerge::pass(const Answer& answer) {
  const Psn all_have = answer.aeth.kind == AckKind::kAck ? answer.psn : answer.psn - 1;
  if (!acknowledged_ || after(all_have, *acknowledged_)) acknowledged_ = all_have;
  return Taken::kPassed;
}

// Each NAK makes the sender go back and spends one of its retries. So it gets one request for a
// packet: NAKs of distant receivers arrive long after the repeat. Packets that the repeat includes
// are not requested. Others are noted, and requested when all have the packets before them, because
// a receiver sends one NAK only. True: send the request at once.
bool AckMerge::take_nak(Receiver& from, const Nak& nak, Psn first) {
  const bool is_on_its_way = comes(from, nak.rnr);
  from.last_nak = nak.psn;
  if (!go_back_.covers(first) || !is_once_) return true;
  if (is_on_its_way) {
    CEPHEUS_SITUATION("a receiver's NAK is about a packet that is on its way");
  } else {
    CEPHEUS_SITUATION("a receiver's NAK waits until all have the packets before it");
    from.lacks = nak;
  }
  return false;
}

// Whether the repeat that was requested from the sender will bring this receiver its next packet. A
// receiver that has sent a NAK ignores later packets until the repeat: if its next packet is
// missing after it, the repeat of that packet was lost. Other receivers' NAKs are about earlier
// losses.
bool AckMerge::comes(const Receiver& receiver, bool is_rnr) const {
  const Psn lacking = receiver.acked + 1;
  if (!go_back_.covers(lacking)) return false;
  if (!go_back_.has_resent(lacking)) return true;
  CEPHEUS_SITUATION("a receiver sends NAK behind a repeat of its packet");
  if (is_rnr) return false;
  return go_back_.begins_at(lacking) || !receiver.last_nak ||
         !go_back_.covers(*receiver.last_nak) || after(*receiver.last_nak, lacking);
}

// The NAK to send for `first`, if a receiver lacks it and no repeat will bring it.
std::optional<Nak> AckMerge::due(Psn first) const {
  std::optional<Nak> due;
  for (const Receiver& one : receivers_) {
    if (!one.lacks || one.acked + 1 != first) continue;
    if (due) {
      CEPHEUS_SITUATION("two receivers of a sender wait for one packet");
      due->join(*one.lacks);
    } else {
      due = one.lacks;
    }
  }
  return due;
}

AckMerge::Taken AckMerge::request(Instant now, const Nak& nak, const Receiver& least,
                                  Answer& answer) {
  answer = {least.acked + 1, nak.aeth(least.msn)};
  go_back_.begin(answer.psn, sent_.value_or(answer.psn));
  for (Receiver& one : receivers_) {
    if (go_back_.covers(one.acked + 1)) one.lacks.reset();
  }
  // No feedback is overdue before that.
  if (nak.rnr) note_packet(now + nak.pause());
  return pass(answer);
}

Instant AckMerge::deadline() const {
  if (!owed_ || !requests_again_ || !trip_.is_known()) return wire::kNever;
  const Receiver* least = slowest();
  if (least == nullptr || !before(least->acked, *owed_)) return wire::kNever;
  const int requests = requests_.count(least->acked + 1);
  if (requests == Requests::kMost) {
    CEPHEUS_SITUATION("a sender's switch has requested one packet as often as it may");
    return wire::kNever;
  }
  return last_packet_ + trip_.wait() * (1 << requests);
}

AckMerge::Answer AckMerge::request_again(Instant now) {
  const Receiver& least = *slowest();
  const Psn first = least.acked + 1;
  if (requests_.count(first) > 0) CEPHEUS_SITUATION("a sender's switch requests one packet twice");
  requests_.add(first);
  Answer answer;
  request(now, Nak::request(first), least, answer);
  return answer;
}

AckMerge::Taken AckMerge::take_cnp(Instant now, Ipv4 host) {
  const Receiver* from = find(host);
  if (from == nullptr) return Taken::kStranger;
  const auto number = static_cast<PathNo>(from - receivers_.data());
  return cnps_->passes(now, number, kNoPath) ? Taken::kPassed : Taken::kAbsorbed;
}

std::optional<AckMerge::Answer> AckMerge::refuse(wire::NakCode code) const {
  const Receiver* least = slowest();
  if (least == nullptr) return std::nullopt;
  return Answer{least->acked + 1, wire::Aeth::nak(code, least->msn)};
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
