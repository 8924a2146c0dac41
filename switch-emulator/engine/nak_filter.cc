#include "switch-emulator/engine/nak_filter.h"

#include <algorithm>

#include "wire/extension_headers.h"

namespace cepheus::fabric {

void NakFilter::hold(const Nak& nak, bool several) {
  const std::size_t most = several ? kMostHeld : 1;
  std::size_t at = 0;
  while (at < held_ && before(waiting_[at].psn, nak.psn)) ++at;
  if (at < held_ && waiting_[at].psn == nak.psn) {
    Nak& same = waiting_[at];
    if (!nak.rnr) return;
    same.timer = same.rnr ? wire::longer_rnr_timer(same.timer, nak.timer) : nak.timer;
    same.rnr = true;
    return;
  }
  if (at == most) return;
  if (held_ < most) ++held_;
  std::copy_backward(waiting_.begin() + at, waiting_.begin() + held_ - 1, waiting_.begin() + held_);
  waiting_[at] = nak;
}

void NakFilter::drop(std::size_t at) {
  std::copy(waiting_.begin() + at + 1, waiting_.begin() + held_, waiting_.begin() + at);
  --held_;
}

void NakFilter::forget(wire::Psn psn) {
  for (std::size_t at = 0; at < held_; ++at) {
    if (waiting_[at].psn == psn) return drop(at);
  }
}

std::optional<Nak> NakFilter::take_due(wire::Psn min) {
  if (held_ == 0 || min != waiting_[0].psn - 1) return std::nullopt;
  const Nak nak = waiting_[0];
  held_ = 0;
  on_sent(nak);
  return nak;
}

void NakFilter::on_sent(const Nak& nak) {
  pending_ = nak.psn;
  if (!nak.rnr) last_sequence_ = nak.psn;
}

}  // namespace cepheus::fabric
