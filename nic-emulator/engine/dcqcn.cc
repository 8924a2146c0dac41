// States: at the link's rate, without any timer; limited, from the first notification until
// increases have reached the link's rate again. advance() runs three timers in the order of time:
// alpha's, a deferred cut's, the rate's.
//
// Rates are whole bits a second, alpha and g fractions of 2^32, so equal inputs give equal states
// on every machine.
//
// Bounds: the rate stays between min_bps and the link's. Parameters that would need more than
// kMostSteps additive increases for a full recovery are refused.
#include "nic-emulator/engine/dcqcn.h"

#include <algorithm>
#include <cassert>

namespace cepheus::rnic {
namespace {

using namespace std::chrono_literals;
using wire::Instant;

// Recovery takes as many steps as additive increases fit into the link's rate. After a long silence
// advance() does all of them in one call.
constexpr std::uint64_t kMostSteps = 100'000;
constexpr std::uint64_t kFastest = 1'000'000'000'000'000;  // b/s; sums of rates are far from 2^64

constexpr std::uint64_t share(std::uint64_t value, std::uint64_t fraction) {  // of 2^32
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(value) * fraction >> 32);
}

}  // namespace

DcqcnParameters DcqcnParameters::hpcc(wire::BitRate link) {
  DcqcnParameters p;
  p.alpha_timer = 1us;
  p.rate_timer = 300us;
  p.byte_counter = 0;
  p.fast_recovery = 2;  // there counted from 0, and called 1
  p.additive_bps = std::max<std::uint64_t>(link.bits_per_second / 5000, 1);  // 5 Mb/s at 25 Gb/s
  p.hyper_bps = 10 * p.additive_bps;
  p.hyper_grows = false;
  p.min_bps = 1'000'000'000;
  p.cut_interval = 4us;
  p.always_clamps = false;
  return p;
}

wire::Result<void> DcqcnParameters::check(wire::BitRate link) const {
  if (alpha_timer < 100ns) return wire::invalid("alpha_timer must be at least 0.1 us");
  if (rate_timer < 100ns) return wire::invalid("rate_timer must be at least 0.1 us");
  if (cut_interval < 0ns) return wire::invalid("cut_interval must not be negative");
  if (!(g > 0 && g <= 1)) return wire::invalid("g must lie above 0 and be at most 1");
  if (byte_counter != 0 && byte_counter < 4096) {
    return wire::invalid("byte_counter must be 0 (none) or at least 4096 bytes");
  }
  if (std::max(additive_bps, hyper_bps) > kFastest) {
    return wire::invalid("additive and hyper must be at most 10^9 Mb/s");
  }
  if (min_bps == 0) return wire::invalid("min_rate must be above 0");
  if (additive_bps < link.bits_per_second / kMostSteps) {
    return wire::invalid("additive must be at least the link's rate / " +
                         std::to_string(kMostSteps) + ": recovery would never end");
  }
  return {};
}

Dcqcn::Dcqcn(const DcqcnParameters& parameters, wire::BitRate link)
    : parameters_(parameters),
      link_(link.bits_per_second),
      g_(static_cast<std::uint64_t>(parameters.g * static_cast<double>(kOne))),
      rate_(link_),
      target_(link_) {
  assert(parameters.check(link));
}

void Dcqcn::reset() {
  limited_ = notified_ = increased_ = false;
  rate_ = target_ = link_;
  alpha_ = kOne;
  by_timer_ = by_bytes_ = 0;
  bytes_ = 0;
  alpha_due_ = rate_due_ = cut_due_ = wire::kNever;
  last_cut_ = Instant::min();
}

// First notification after recovery: starts from the link's rate with the largest alpha.
void Dcqcn::begin(Instant now) {
  limited_ = true;
  increased_ = true;
  alpha_due_ = now + parameters_.alpha_timer;
}

bool Dcqcn::on_notification(Instant now) {
  advance(now);
  if (!limited_) begin(now);
  if (parameters_.cut_interval.count() == 0) {
    cut(now);
    move_alpha(true);
    alpha_due_ = now + parameters_.alpha_timer;
    return true;
  }
  notified_ = true;
  if (alpha_due_ == wire::kNever) alpha_due_ = now + parameters_.alpha_timer;
  if (cut_due_ != wire::kNever) return false;
  const Instant earliest = last_cut_ + parameters_.cut_interval;
  if (now < earliest) {
    cut_due_ = earliest;
    return false;
  }
  cut(now);
  return true;
}

void Dcqcn::cut(Instant now) {
  ++cuts_;
  if (parameters_.always_clamps || increased_) target_ = rate_;
  const std::uint64_t least = std::min(parameters_.min_bps, link_);
  rate_ = std::max(least, rate_ - share(rate_, alpha_ / 2));
  by_timer_ = by_bytes_ = 0;
  bytes_ = 0;
  increased_ = false;
  last_cut_ = now;
  cut_due_ = wire::kNever;
  rate_due_ = now + parameters_.rate_timer;
}

void Dcqcn::move_alpha(bool up) { alpha_ = alpha_ - share(alpha_, g_) + (up ? g_ : 0); }

void Dcqcn::on_alpha_timer() {
  const std::uint64_t before = alpha_;
  const bool immediate = parameters_.cut_interval.count() == 0;
  move_alpha(!immediate && notified_);
  notified_ = false;
  // A value that has reached its limit needs no timer until the next notification.
  alpha_due_ =
      alpha_ == before && alpha_ != kOne ? wire::kNever : alpha_due_ + parameters_.alpha_timer;
}

void Dcqcn::increase() {
  const DcqcnParameters& p = parameters_;
  const std::uint32_t most = std::max(by_timer_, by_bytes_);
  const std::uint32_t least = p.byte_counter == 0 ? by_timer_ : std::min(by_timer_, by_bytes_);
  if (least > p.fast_recovery) {
    target_ += p.hyper_bps * (p.hyper_grows ? least - p.fast_recovery : 1);
  } else if (most >= p.fast_recovery) {
    target_ += p.additive_bps;
  }
  target_ = std::min(target_, link_);
  rate_ = (target_ + rate_ + 1) / 2;
  increased_ = true;
  if (rate_ == link_ && cut_due_ == wire::kNever) reset();
}

void Dcqcn::advance(Instant now) {
  while (limited_) {
    const Instant next = std::min({alpha_due_, cut_due_, rate_due_});
    if (next > now) return;
    if (next == alpha_due_) {
      on_alpha_timer();
    } else if (next == cut_due_) {
      cut(next);
    } else {
      rate_due_ += parameters_.rate_timer;
      ++by_timer_;
      increase();
    }
  }
}

void Dcqcn::on_sent(Instant now, wire::Bytes bytes) {
  advance(now);
  if (!limited_ || parameters_.byte_counter == 0) return;
  for (bytes_ += bytes; limited_ && bytes_ >= parameters_.byte_counter;) {
    bytes_ -= parameters_.byte_counter;
    ++by_bytes_;
    increase();
  }
}

}  // namespace cepheus::rnic
