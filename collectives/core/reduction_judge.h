// The leader's judgement of one size class of reductions. judge.h has its limits: the threshold, and
// the share of samples. Pure.
//
// In a reduction all ranks wait for the one that comes last. A rank's time is therefore the way's own
// and, now and then, hundreds of times that, whatever the way is. Each plan's times are those of its
// fastest rank: a plan in which one rank alone was late shows no wait at all. Where waits are left,
// a difference counts only if it is more than twice its standard error.
//
// A comparison is a row of short plans, with as many timed calls of each way. It goes on until it has
// an outcome:
//
//   against the present way   it takes longer, by more than twice the standard error
//   none                      its mean is not the longer one, or the comparison has most() calls
//
// Two outcomes in a row against the present way change it. A program's calls may have a period, so
// the number of own calls in each plan is irregular.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/core/comparison.h"
#include "collectives/core/judge.h"
#include "collectives/core/pause.h"

namespace cepheus::coll {

class ReductionJudge {
 public:
  using Limits = Judge::Limits;

  explicit ReductionJudge(const Limits& limits)
      : limits_(limits), pause_(limits.share, limits.run) {}

  // For a class without any report.
  static Plan first_plan(const Limits& limits) {
    return {Way::kNetwork, calls(limits), calls(limits)};
  }
  // `plan` is over, and took the fastest rank these times.
  Plan judge(const Plan& plan, const Times& times);

  // The last times of each way; Times::kNone: not known.
  std::int64_t network_ns() const { return times_[Way::kNetwork]; }
  std::int64_t other_ns() const { return times_[Way::kOther]; }
  std::uint32_t comparisons() const { return comparisons_; }

 private:
  // Of each way in a plan of a comparison: the timed ones, and the first, which is not timed.
  static std::uint32_t timed(const Limits& limits) { return std::min(4u, limits.run); }
  static std::uint32_t calls(const Limits& limits) { return timed(limits) + 1; }

  // Timed calls of each way in a comparison: so far, ...
  std::uint32_t timed() const { return plans_ * timed(limits_); }
  // ... at least, if it is against the present way. A few calls may miss the network's losses, ...
  std::uint32_t least(Way way) const {
    return way == Way::kOther ? 4 * limits_.run : std::min(8u, limits_.run);
  }
  // ... if it is not; ...
  std::uint32_t enough() const { return (is_doubted_ || is_suspect_ ? 4 : 1) * limits_.run; }
  // ... and at most.
  std::uint32_t most() const { return 16 * limits_.run; }

  bool takes_longer(Way way, double errors) const;
  bool speaks_against(Way way) const;
  void add(const Plan& plan, const Times& times);
  Plan end(Way way);
  void forget();
  Plan compare(Way way);
  Plan pause(Way way);
  Plan rest(Way way) { return pause_.next(times_, way, calls(limits_)); }
  std::uint32_t irregular();
  double& error_of(Way way) { return way == Way::kNetwork ? network_error_ : other_error_; }

  // One way in the plans of a comparison.
  struct Sums {
    double means = 0, squares = 0, errors = 0;
    void add(std::int64_t mean, double error);
    double mean(double plans) const { return means / plans; }
    double error(double plans) const;  // squared
  };

  const Limits limits_;
  Pause pause_;
  WayTimes times_;
  std::uint32_t comparisons_ = 0;
  Sums own_, samples_;
  std::uint32_t plans_ = 0;                     // of this comparison
  double network_error_ = 0, other_error_ = 0;  // squared, of the last times
  std::uint32_t drawn_ = 0;                     // irregular numbers
  std::uint32_t counted_below_ = 0;             // reports count once the pause is no longer
  bool is_suspect_ = false;                     // a report caused this comparison
  bool is_doubted_ = false;                     // the last one spoke against the present way
};

}  // namespace cepheus::coll
