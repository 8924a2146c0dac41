#include "switch-emulator/engine/mcrdma/ack_merge.h"

#include <algorithm>
#include <utility>

namespace cepheus::fabric {

using wire::AckKind;

AckMerge::AckMerge(Ipv4 alias, PortId sender_port, net::CnpPolicy cnps, Duration cnp_window)
    : alias_(alias), port_(sender_port), cnps_(make_cnp_policy(cnps, cnp_window)) {}

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

void AckMerge::on_data(Instant now, Psn psn) {
  for (Receiver& one : receivers_) {
    const bool is_repeat = sent_ && !after(psn, *sent_);
    if (is_repeat && lags(one) && (!one.is_known || !after(psn, one.acked + 1))) {
      one.unanswered.note(now);
    }
  }
  if (is_asked(psn) && !is_resent(psn)) resent_ = psn;
  if (!sent_ || after(psn, *sent_)) sent_ = psn;
}

AckMerge::Taken AckMerge::take(const Rules& rules, Ipv4 host, Psn psn, const wire::Aeth& aeth,
                               Answer& answer) {
  Receiver* const from = find(host);
  if (from == nullptr) return Taken::kStranger;
  from->heard = (from->heard + 1) & Psn::kMask;
  from->unanswered.clear();
  const bool is_ack = aeth.kind == AckKind::kAck;
  // An error may be a switch's word for this receiver, which does not know what that has. Feedback that
  // overtook another says less than what is known: it is no reason to know less.
  const Psn cumulative = is_ack ? psn : psn - 1;
  const bool is_news = !from->is_known || !before(cumulative, from->acked);
  if (!aeth.is_fatal_nak() && is_news) {
    from->acked = cumulative;
    from->msn = aeth.msn;
    from->is_known = true;
  }
  const Receiver* least = slowest();
  if (least == nullptr) {
    if (rules.sender_unknown) return Taken::kWithheld;
    least = from;
  }
  if (aeth.is_fatal_nak()) {
    answer = {rules.sender_nak_minimum ? least->acked + 1 : psn, aeth};
    return tell(answer);
  }
  if (held_ && !before(least->acked, held_->psn)) held_.reset();  // all have it
  if (!is_ack) return take_nak(rules, {psn, aeth}, *least, answer);
  if (held_ && least->acked + 1 == held_->psn)
    return ask(*std::exchange(held_, {}), *least, answer);
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
// not asked for; and what has come again and was lost again, behind what others lack, is asked for when
// all have what is before it.
AckMerge::Taken AckMerge::take_nak(const Rules& rules, const Nak& nak, const Receiver& least,
                                   Answer& answer) {
  if (!rules.sender_nak_minimum) {
    answer = {nak.psn, nak.aeth};
    return tell(answer);
  }
  const Psn first = least.acked + 1;
  const bool is_still_not_ready =
      nak.aeth.kind == AckKind::kRnrNak && nak.psn == first && is_resent(first);
  if (!is_asked(first) || is_still_not_ready || !rules.sender_nak_once) {
    return ask(nak, least, answer);
  }
  const bool waits = after(nak.psn, first) && is_resent(nak.psn);
  if (waits && (!held_ || before(nak.psn, held_->psn))) held_ = nak;
  return Taken::kAbsorbed;
}

AckMerge::Taken AckMerge::ask(const Nak& nak, const Receiver& least, Answer& answer) {
  answer = {least.acked + 1, nak.aeth};
  answer.aeth.msn = least.msn;
  asked_ = answer.psn;
  asked_to_ = sent_ && after(*sent_, answer.psn) ? *sent_ : answer.psn;
  resent_.reset();
  return tell(answer);
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
