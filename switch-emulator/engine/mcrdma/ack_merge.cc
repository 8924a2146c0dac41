#include "switch-emulator/engine/mcrdma/ack_merge.h"

#include <algorithm>

namespace cepheus::fabric {

using wire::AckKind;

AckMerge::AckMerge(Ipv4 alias, PortId sender_port, net::CnpPolicy cnps, Duration cnp_window)
    : alias_(alias), port_(sender_port), cnps_(make_cnp_policy(cnps, cnp_window)) {}

void AckMerge::set_receivers(std::span<const wire::MrpMember> receivers, std::optional<Psn> start) {
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
  receivers_ = std::move(next);
  for (std::size_t i = 0; i < receivers_.size(); ++i) cnps_->on_path_added();
}

void AckMerge::on_data(Psn psn) {
  if (asked_ && !after(psn, *asked_)) asked_.reset();
  if (!sent_ || after(psn, *sent_)) sent_ = psn;
}

AckMerge::Taken AckMerge::take(const Rules& rules, Ipv4 host, Psn psn, const wire::Aeth& aeth,
                               Answer& answer) {
  Receiver* const from = find(host);
  if (from == nullptr) return Taken::kStranger;
  from->heard = (from->heard + 1) & Psn::kMask;
  const bool is_ack = aeth.kind == AckKind::kAck;
  const Psn cumulative = is_ack ? psn : psn - 1;
  // Feedback that overtook another says less than what is known: it is no reason to know less.
  if (!from->is_known || !before(cumulative, from->acked)) {
    from->acked = cumulative;
    from->msn = aeth.msn;
    from->is_known = true;
  }
  const Receiver* least = slowest();
  if (least == nullptr) {
    if (rules.sender_unknown) return Taken::kWithheld;
    least = from;
  }
  if (is_ack) {
    answer = {psn, aeth};
    answer.aeth.value = wire::Aeth::kNoCreditLimit;
    const bool has_all = !after(psn, least->acked) || !rules.sender_ack_minimum;
    return has_all ? Taken::kPassed : Taken::kAbsorbed;
  }
  answer = {rules.sender_nak_minimum ? least->acked + 1 : psn, aeth};
  if (rules.sender_nak_minimum) answer.aeth.msn = least->msn;
  if (aeth.is_fatal_nak()) return Taken::kPassed;
  if (asked_ && !after(answer.psn, *asked_) && rules.sender_nak_once) return Taken::kAbsorbed;
  asked_ = answer.psn;
  return Taken::kPassed;
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
