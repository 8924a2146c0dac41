#include "switch-emulator/engine/group/naks.h"

#include <algorithm>
#include <utility>

#include "wire/situation.h"

namespace cepheus::fabric {

void Naks::reset() {
  held_ = 0;
  last_sequence_.reset();
  sent_.reset();
  requested_.reset();
  requests_.reset();
}

void Naks::hold(const Nak& nak) {
  if (!nak.rnr && knows(nak.psn)) return;
  std::size_t at = 0;
  while (at < held_ && before(waiting_[at].psn, nak.psn)) ++at;
  if (at < held_ && waiting_[at].psn == nak.psn) {
    CEPHEUS_SITUATION("two NAKs are for the same packet");
    return waiting_[at].join(nak);
  }
  if (at == most_held_) {
    CEPHEUS_SITUATION("a NAK finds nearer ones in all places");
    return;
  }
  if (held_ < most_held_) {
    ++held_;
  } else {
    CEPHEUS_SITUATION("a NAK takes the place of a farther one");
  }
  std::copy_backward(waiting_.begin() + at, waiting_.begin() + held_ - 1, waiting_.begin() + held_);
  waiting_[at] = nak;
}

void Naks::drop(std::size_t at) {
  std::copy(waiting_.begin() + at + 1, waiting_.begin() + held_, waiting_.begin() + at);
  --held_;
}

std::optional<Nak> Naks::take_due(wire::Instant now, wire::Psn min, bool from_slowest) {
  if (held_ == 0 || (min != waiting_[0].psn - 1 && waits(waiting_[0]))) return std::nullopt;
  if (!from_slowest && !is_rechecked_) return std::nullopt;
  held_ = 0;
  const Nak nak = waiting_[0];
  const bool is_again = is_sent(nak.psn);
  const wire::Duration pause = nak.pause();
  const bool is_paused = pause > Nak::request(nak.psn).pause() || (is_again && sent_->is_paused);
  const wire::Instant begins = std::max(is_again ? sent_->begins : now, now + pause);
  sent_ = Sent{
      nak.psn, is_again ? sent_->naks + 1 : 1, is_again ? sent_->first : now, now, pause, is_paused,
      begins};
  if (!nak.rnr) last_sequence_ = nak.psn;
  return nak;
}

std::optional<Naks::Repeat> Naks::on_data(wire::Instant now, wire::Psn psn) {
  if (requested_ && !after(psn, *requested_)) requested_.reset();
  for (std::size_t at = 0; at < held_; ++at) {
    // The receiver that lacks this packet gets it now, and answers it anew. If its RNR NAK were
    // passed on later, the packet would come twice.
    if (waiting_[at].psn != psn) continue;
    CEPHEUS_SITUATION("a packet is repeated while a NAK for it waits");
    drop(at);
    break;
  }
  if (!sent_ || after(psn, sent_->psn)) return std::nullopt;
  const Sent sent = *std::exchange(sent_, std::nullopt);
  Repeat repeat;
  repeat.needs_ack = needs_ack_after_rnr_ && sent.pause > wire::Duration();
  if (sent.naks > 2) CEPHEUS_SITUATION("a source repeats a packet after three NAKs");
  if (!sent.is_paused && sent.naks == 1) repeat.trip = now - sent.last - sent.pause;
  if (!sent.is_paused && sent.naks == 2) repeat.trip = now - sent.first;
  repeat.is_exact = sent.naks == 1;
  return repeat;
}

bool Naks::on_min(wire::Psn min) {
  while (held_ > 0 && !before(min, waiting_[0].psn)) {
    CEPHEUS_SITUATION("all have a packet for which a NAK waits");
    drop(0);
  }
  if (last_sequence_ && !before(min, *last_sequence_)) last_sequence_.reset();
  if (sent_ && !before(min, sent_->psn)) sent_.reset();
  if (!requested_ || before(min, *requested_)) return false;
  requested_.reset();
  return true;
}

}  // namespace cepheus::fabric
