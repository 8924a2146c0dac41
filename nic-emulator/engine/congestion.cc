// A marked request owes an echo or a CNP, as configured; a marked response owes a CNP. An echo
// stays owed until an acknowledgement takes it along, and CNPs are cnp_interval apart.
//
// Pacing is a virtual clock: each packet moves the next one's earliest time by its own length at
// the present rate. That time lags the present by catch_up at most, which bounds the burst of a
// late driver. A packet at the link's rate never waits. state() advances a copy, so queries change
// nothing.
#include "nic-emulator/engine/congestion.h"

#include <algorithm>

namespace cepheus::rnic {

using wire::Instant;

wire::Result<void> CongestionConfig::check() const {
  if (link.is_unlimited()) {
    return wire::invalid("congestion control needs the link's rate");
  }
  if (cnp_interval.count() < 0 || catch_up.count() < 0) {
    return wire::invalid("cnp_interval must not be negative");
  }
  return reaction.check(link);
}

QpCongestion::QpCongestion(const CongestionConfig& config, Counters& counters)
    : config_(config), counters_(counters), reaction_(config.reaction, config.link) {}

void QpCongestion::reset() {
  reaction_.reset();
  waits_ = owes_cnp_ = owes_echo_ = false;
  next_send_ = next_cnp_ = Instant::min();
}

void QpCongestion::on_marked(Instant now, bool answers) {
  counters_.add(Counter::kRxCeMarked);
  if (answers && config_.notification == Notification::kCeEcho) {
    owes_echo_ = true;
  } else if (now >= next_cnp_) {
    owes_cnp_ = true;
    next_cnp_ = now + config_.cnp_interval;
  }
}

void QpCongestion::on_cnp_sent() {
  owes_cnp_ = false;
  counters_.add(Counter::kTxCnp);
}

void QpCongestion::on_echo_sent() {
  owes_echo_ = false;
  counters_.add(Counter::kTxCeEcho);
}

void QpCongestion::on_notification(Instant now) {
  const std::uint64_t before = reaction_.cuts();
  reaction_.on_notification(now);
  counters_.add(Counter::kRateCuts, reaction_.cuts() - before);
}

bool QpCongestion::on_sent(Instant now, std::size_t bytes) {
  const std::uint64_t before = reaction_.cuts();
  reaction_.on_sent(now, bytes);
  counters_.add(Counter::kRateCuts, reaction_.cuts() - before);
  if (!reaction_.is_limited()) return false;
  next_send_ = std::max(next_send_, now - config_.catch_up) + reaction_.rate().time_for(bytes);
  waits_ = next_send_ > now;
  return waits_;
}

CongestionState QpCongestion::state(Instant now) const {
  Dcqcn present = reaction_;
  present.advance(now);
  return {present.rate(), present.alpha(), present.is_limited()};
}

}  // namespace cepheus::rnic
