#include "switch-emulator/engine/nak_filter.h"

#include "wire/extension_headers.h"

namespace cepheus::fabric {

void NakFilter::hold(const Nak& nak) {
  if (!held_ || before(nak.psn, held_->psn)) {
    held_ = nak;
  } else if (nak.psn == held_->psn && nak.rnr) {
    held_->timer = held_->rnr ? wire::longer_rnr_timer(held_->timer, nak.timer) : nak.timer;
    held_->rnr = true;
  }
}

std::optional<Nak> NakFilter::take_due(wire::Psn min) {
  if (!held_ || min != held_->psn - 1) return std::nullopt;
  const Nak nak = *held_;
  held_.reset();
  tell(nak);
  return nak;
}

void NakFilter::tell(const Nak& nak) {
  asked_ = nak.psn;
  if (!nak.rnr) said_ = nak.psn;
}

}  // namespace cepheus::fabric
