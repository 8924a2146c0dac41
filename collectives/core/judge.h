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
// present way alone, every kCheckTime of calls. If that way has become slow, the ways are compared
// at once. The first such reports come sooner: after as many calls as a comparison has samples, then
// after twice as many each time. A short comparison may miss losses.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "collectives/core/comparison.h"

namespace cepheus::coll {

class Judge {
 public:
  static constexpr std::uint32_t kFirst = 8;  // timed samples of the first comparisons together
  // They give the network up if it takes this many times as long, divided by the samples so far, but
  // never below the threshold.
  static constexpr double kHopeless = 48;
  static constexpr std::chrono::nanoseconds kCheckTime = std::chrono::milliseconds(100);
  static constexpr std::uint32_t kMost = 1'000'000;  // calls until the next comparison

  struct Limits {
    double threshold;   // 0.5: by half longer
    double share;       // of samples in the long run
    std::uint32_t run;  // timed samples of each comparison after the first ones
  };

  explicit Judge(const Limits& limits) : limits_(limits) {}
  virtual ~Judge() = default;
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  // For a class without any report.
  static Plan first_plan() { return {Way::kNetwork, 2, 2}; }
  // `plan` is over, and took the slowest rank these times.
  virtual Plan judge(const Plan& plan, const Times& times);

  // The last times of each way; Times::kNone: not known.
  std::int64_t network_ns() const { return network_; }
  std::int64_t other_ns() const { return other_; }
  std::uint32_t comparisons() const { return comparisons_; }

 protected:
  Plan rest(Way way, std::uint32_t samples);
  double pause_after(Way way, std::uint32_t samples);
  std::int64_t& time_of(Way way) { return way == Way::kNetwork ? network_ : other_; }

  const Limits limits_;
  std::int64_t network_ = Times::kNone, other_ = Times::kNone;
  std::uint32_t comparisons_ = 0;
  std::uint32_t spent_ = 0;  // samples since the last pause
  std::uint32_t pause_ = 0;  // calls until the next comparison
  std::uint32_t check_ = 0;  // until the ranks report the present way's times
  bool is_doubted_ = false;  // the last comparison spoke against the present way

 private:
  bool is_first() const { return tried_ < std::min(kFirst, limits_.run); }
  // Of the next comparison, with the one that is not timed.
  std::uint32_t next_samples() const { return 1 + (is_first() ? 1 : limits_.run); }
  bool speaks_against(Way way) const;
  bool takes_longer(double times) const;  // the network, than the other way
  Plan compare(Way way) const { return {way, limits_.run + 1, next_samples()}; }
  Plan continue_first(Way way, std::uint32_t timed);
  Plan pause(Way way);

  // Timed samples of the first comparisons; limits_.run or more: they are over.
  std::uint32_t tried_ = 0;
};

}  // namespace cepheus::coll
