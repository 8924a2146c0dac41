// Two ways to serve a communicator's calls of one size class, and which of them are samples of the
// other way. All ranks choose alike: a way follows from the count of the class's calls and from
// plans, which the ranks agree on in the order of the calls. Pure.
//
//   plan {way, own, samples}:  `own` calls go the plan's way, then `samples` the other way; before
//                              the next one the ranks report their times and agree on a plan
//
// No clock is shared: each rank times its own calls.
//
//   broadcasts   The slowest rank's times count: the root of a tree leaves early, and in a row of
//                broadcasts its children's calls show that. A time is the mean of all timed calls but
//                the longest, for the machine may stall one.
//   reductions   All ranks wait for the one that comes last. Its time is the way's own, so the fastest
//                rank's times count. A loss at one rank shows there, and the others wait for it in the
//                next call. A time is the mean of all timed calls, with its standard error.
//
// A median would hide losses: with 5 % of loss most calls lose nothing, though all together take much
// longer.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "collectives/core/code.h"
#include "collectives/core/collective.h"

namespace cepheus::coll {

// kNetwork: a broadcast by multicast, another collective in the switches.
enum class Way : std::uint8_t { kNetwork, kOther };
constexpr Way other(Way way) { return way == Way::kNetwork ? Way::kOther : Way::kNetwork; }

// For one call.
struct Choice {
  Way way = Way::kNetwork;
  // A reduction right behind an agreement. It shows whether all ranks have agreed: a rank that has not
  // ends it in errors on all ranks. So it never goes to the saved function, in which the others would
  // wait for that rank.
  bool confirms = false;
  Code failure = Code::kDone;  // of a reduction's agreement, at this rank
};

// Calls of one collective. Sizes above half of the class's largest, which is a power of two; barriers
// have none. Calls that the program does not wait for have classes of their own.
struct SizeClass {
  // `size`: bytes of a broadcast, or of each rank's block.
  SizeClass(Collective of, std::size_t size, bool is_blocking)
      : collective(of),
        exponent(static_cast<std::uint8_t>(size == 0 ? 0 : std::bit_width(size - 1))),
        blocking(is_blocking) {}
  // A call ends at no rank before all ranks have begun it.
  bool waits_for_all() const { return collective != Collective::kBcast; }

  Collective collective;
  std::uint8_t exponent;
  bool blocking;
  friend auto operator<=>(const SizeClass&, const SizeClass&) = default;
};
// "up to 64 KiB" of blocking broadcasts, "ibcast up to 64 KiB", "allreduce up to 8 B", "ibarrier"
inline std::string to_text(const SizeClass& sizes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const std::string calls = (sizes.blocking ? "" : "i") + std::string(name(sizes.collective));
  if (sizes.collective == Collective::kBarrier) return calls;
  const bool is_usual = sizes.blocking && sizes.collective == Collective::kBcast;
  return (is_usual ? "" : calls + " ") + "up to " + std::to_string(1u << sizes.exponent % 10u) +
         " " + kUnits[sizes.exponent / 10u];
}

// A rank's report to the others, in nanoseconds a call. Sent as these bytes.
struct Times {
  static constexpr std::int64_t kNone = 0, kVoid = -1;  // not taken; something else came between
  static constexpr std::int64_t kFailed = -2;           // a rank can't report any more
  std::int64_t own = kNone, samples = kNone;
  double own_error = 0, samples_error = 0;  // of reductions: the means' squared standard errors

  bool is_void() const { return own == kVoid || samples == kVoid; }
  bool has_failed() const { return own == kFailed; }
  void take_slower(const Times& others) {
    own = slower(own, others.own);
    samples = slower(samples, others.samples);
  }
  void take_faster(const Times& others) {
    take_faster(own, own_error, others.own, others.own_error);
    take_faster(samples, samples_error, others.samples, others.samples_error);
  }

 private:
  static std::int64_t slower(std::int64_t a, std::int64_t b) {
    return std::min(a, b) < kNone ? std::min(a, b) : std::max(a, b);
  }
  // Failed and void are less than any time, and kNone is no time.
  static void take_faster(std::int64_t& a, double& error, std::int64_t b, double error_of_b) {
    if (b == kNone || (a != kNone && a <= b)) return;
    a = b;
    error = error_of_b;
  }
};

// Travels as it is.
struct Plan {
  Way way;
  std::uint32_t own, samples;
  bool goes_on = false;  // times add to those of the plan before

  // Instead of a plan: a rank can't take part any more.
  static constexpr Plan failure() { return {Way::kNetwork, 0, 0}; }
  bool is_failure() const { return own + samples == 0; }
};

class Comparison {
 public:
  // The last of the plan's own calls are timed, at most this number; and the samples. The first
  // of each is not timed: it may set up a group, and waits for ranks that the other way still keeps.
  // A plan that goes on times the first of its own, too. Before samples of reductions as many own
  // calls are timed as samples, so that rare waits weigh alike.
  static constexpr std::uint32_t kWindow = 64;

  explicit Comparison(const Plan& plan, bool waits_for_all = false)
      : waits_for_all_(waits_for_all), plan_(plan) {}

  // The ranks report times() and agree on the plan to follow before the class's next call.
  bool is_due() const { return at_ == plan_.own + plan_.samples; }
  void follow(const Plan& plan);
  const Plan& plan() const { return plan_; }

  // The class's next call: the way that it shall go, and whether to time it.
  struct Turn {
    Way way;
    bool is_sample, is_timed;
  };
  Turn next();
  // The outcome of a turn that was to be timed.
  void end(const Turn& turn, std::chrono::nanoseconds time) { tally(turn).add(time); }
  void discard(const Turn& turn) { tally(turn).is_void = true; }
  Times times() const {
    if (!waits_for_all_) return {own_.mean_but_longest(), samples_.mean_but_longest()};
    return {own_.mean(), samples_.mean(), own_.error(), samples_.error()};
  }

 private:
  struct Tally {
    std::chrono::nanoseconds sum{0}, longest{0};
    double squares = 0;
    std::uint32_t count = 0;
    bool is_void = false;

    void add(std::chrono::nanoseconds time) {
      const auto value = static_cast<double>(time.count());
      sum += time;
      squares += value * value;
      longest = std::max(longest, time);
      ++count;
    }
    std::int64_t mean_but_longest() const;
    std::int64_t mean() const;
    double error() const;  // the mean's, squared

   private:
    static std::int64_t mean_of(std::chrono::nanoseconds all, std::uint32_t number) {
      return std::max<std::int64_t>(1, all.count() / number);
    }
  };
  Tally& tally(const Turn& turn) { return turn.is_sample ? samples_ : own_; }
  bool is_timed(std::uint32_t own) const;

  const bool waits_for_all_;
  Plan plan_;
  std::uint32_t at_ = 0;  // of the plan's calls
  Tally own_, samples_;
};

inline void Comparison::follow(const Plan& plan) {
  plan_ = plan;
  at_ = 0;
  if (!plan.goes_on) own_ = samples_ = {};
}

inline bool Comparison::is_timed(std::uint32_t own) const {
  const bool is_first = own == 0 && !plan_.goes_on;
  const std::uint32_t window = waits_for_all_ && plan_.samples > 0 ? plan_.samples - 1 : kWindow;
  return !is_first && own + window >= plan_.own;
}

inline Comparison::Turn Comparison::next() {
  const std::uint32_t at = at_++;
  if (at >= plan_.own) return {other(plan_.way), true, at > plan_.own};
  return {plan_.way, false, is_timed(at)};
}

inline std::int64_t Comparison::Tally::mean_but_longest() const {
  return is_void || count < 2 ? mean() : mean_of(sum - longest, count - 1);
}

inline std::int64_t Comparison::Tally::mean() const {
  if (is_void) return Times::kVoid;
  return count == 0 ? Times::kNone : mean_of(sum, count);
}

inline double Comparison::Tally::error() const {
  if (count < 2) return 0;
  const auto number = static_cast<double>(count), all = static_cast<double>(sum.count());
  const double variance = (squares - all * all / number) / (number - 1);
  return std::max(0.0, variance / number);
}

}  // namespace cepheus::coll
