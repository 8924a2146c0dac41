// The leader's judgement of one size class of broadcasts: the way that serves it, and the times of
// comparisons. reduction_judge.h has that of reductions. Pure.
//
// The network is given up if it takes longer than the other way by more than the threshold. It
// returns if it is faster than the other way. Between the two a class keeps its way.
//
// The first comparisons follow each other at once, and are short: a call over a fabric that loses
// packets may take as long as hundreds of the other way. The first one has one sample, and each of
// the others as many as all before it. Their times are one mean. They give up only a network that
// takes many times as long, because a short run shows latency, not throughput.
//
// Later comparisons are rare: samples stay below their share of the class's calls, and of their
// time. One that speaks against the present way is repeated at once, and a second one in a row
// decides. One is enough if the network is clearly slow. In between the ranks report times of the
// present way alone (pause.h). If that way has become slow, the ways are compared at once. A short
// comparison may miss losses.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/core/comparison.h"
#include "collectives/core/pause.h"

namespace cepheus::coll {

class Judge {
 public:
  static constexpr std::uint32_t kFirst = 8;  // timed samples of the first comparisons together
  // They give the network up if it takes this many times as long, divided by the samples so far, but
  // never below the threshold.
  static constexpr double kHopeless = 48;

  struct Limits {
    double threshold;   // 0.5: by half longer
    double share;       // of samples in the long run
    std::uint32_t run;  // timed samples of each comparison after the first ones
  };

  explicit Judge(const Limits& limits) : limits_(limits), pause_(limits.share, limits.run) {}

  // For a class without any report.
  static Plan first_plan() { return {Way::kNetwork, 2, 2}; }
  // `plan` is over, and took the slowest rank these times.
  Plan judge(const Plan& plan, const Times& times);

  // The last times of each way; Times::kNone: not known.
  std::int64_t network_ns() const { return times_[Way::kNetwork]; }
  std::int64_t other_ns() const { return times_[Way::kOther]; }
  std::uint32_t comparisons() const { return comparisons_; }

 private:
  bool is_first() const { return tried_ < std::min(kFirst, limits_.run); }
  // Of the next comparison, with the one that is not timed.
  std::uint32_t next_samples() const { return 1 + (is_first() ? 1 : limits_.run); }
  bool speaks_against(Way way) const;
  bool takes_longer(double times) const;  // the network, than the other way
  Plan compare(Way way) const { return {way, limits_.run + 1, next_samples()}; }
  Plan continue_first(Way way, std::uint32_t timed);
  Plan pause(Way way);
  Plan rest(Way way) { return pause_.next(times_, way, next_samples()); }

  const Limits limits_;
  Pause pause_;
  WayTimes times_;
  std::uint32_t comparisons_ = 0;
  // Timed samples of the first comparisons; limits_.run or more: they are over.
  std::uint32_t tried_ = 0;
  bool is_doubted_ = false;  // the last comparison spoke against the present way
};

}  // namespace cepheus::coll
