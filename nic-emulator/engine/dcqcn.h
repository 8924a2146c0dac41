// DCQCN's reaction point: one sender's rate, controlled by the congestion notifications that arrive
// (Zhu et al., SIGCOMM 2015, section 3.1 and figure 7).
//
//     notification      target = rate; rate *= 1 - alpha/2; alpha += g (1 - alpha)
//     alpha's timer     alpha -= g alpha
//     rate's timer, or byte_counter bytes sent
//                       fast recovery, then additive, then hyper increase of the target;
//                       rate = (target + rate) / 2
//
// Timers are evaluated on demand: each call advances the state to `now`, and the result does not
// depend on the number of calls. A sender at the link's rate has no state.
#pragma once

#include <cstdint>

#include "wire/result.h"
#include "wire/types.h"

namespace cepheus::rnic {

struct DcqcnParameters {
  wire::Duration alpha_timer = std::chrono::microseconds(55);
  wire::Duration rate_timer = std::chrono::microseconds(55);
  wire::Bytes byte_counter = 10'000'000;  // 0: none, the timer alone counts
  std::uint32_t fast_recovery = 5;        // increases before this many only approach the target
  std::uint64_t additive_bps = 40'000'000;
  std::uint64_t hyper_bps = 200'000'000;
  bool hyper_grows = true;              // the n-th hyper increase is n times that
  std::uint64_t min_bps = 100'000'000;  // or the link's rate, if that is less
  double g = 1.0 / 256;
  // 0: each notification cuts the rate and changes alpha at once. Otherwise cuts are at least this
  // far apart, and alpha changes by its timer only: up if a notification has arrived since the last
  // change. For NICs where each acknowledgement may be a notification.
  wire::Duration cut_interval{0};
  // False: a cut that follows another without an increase keeps the target. So a series of cuts
  // recovers to the first rate.
  bool always_clamps = true;

  // The paper's values. It does not give hyper_bps and min_bps.
  static DcqcnParameters orig() { return {}; }
  // Values of the simulator of HPCC's and TMCF's measurements. It has no byte counter, and its
  // steps grow with the link's rate.
  static DcqcnParameters hpcc(wire::BitRate link);

  // kInvalid: the error names the impossible parameter. Precondition: `link` is not unlimited.
  wire::Result<void> check(wire::BitRate link) const;
};

class Dcqcn {
 public:
  // Preconditions: parameters.check(link) succeeds; the parameters outlive this.
  Dcqcn(const DcqcnParameters& parameters, wire::BitRate link);

  // True: the rate was cut at once.
  bool on_notification(wire::Instant now);
  void on_sent(wire::Instant now, wire::Bytes bytes);
  // Runs all timers that are due by `now`.
  void advance(wire::Instant now);
  void reset();

  // As of the last call; below the link's rate while there is state.
  bool is_limited() const { return limited_; }
  wire::BitRate rate() const { return {rate_}; }
  wire::BitRate target() const { return {target_}; }
  double alpha() const { return static_cast<double>(alpha_) / static_cast<double>(kOne); }
  std::uint64_t cuts() const { return cuts_; }

 private:
  // alpha and g are fractions of 2^32, so that state does not depend on how steps are grouped.
  static constexpr std::uint64_t kOne = std::uint64_t{1} << 32;

  void begin(wire::Instant now);
  void cut(wire::Instant now);
  void move_alpha(bool up);
  void on_alpha_timer();
  void increase();

  const DcqcnParameters& parameters_;
  const std::uint64_t link_;
  const std::uint64_t g_;
  bool limited_ = false;
  bool notified_ = false;   // since alpha last moved
  bool increased_ = false;  // since the last cut
  std::uint64_t rate_, target_;
  std::uint64_t alpha_ = kOne;
  std::uint32_t by_timer_ = 0, by_bytes_ = 0;  // increases since the last cut
  wire::Bytes bytes_ = 0;                      // since the last increase that they made
  wire::Instant alpha_due_ = wire::kNever;
  wire::Instant rate_due_ = wire::kNever;
  wire::Instant cut_due_ = wire::kNever;  // deferred to cut_interval after the last cut
  wire::Instant last_cut_ = wire::Instant::min();
  std::uint64_t cuts_ = 0;
};

}  // namespace cepheus::rnic
