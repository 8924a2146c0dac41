// Two ways to serve a communicator's calls of one size class, and which of them are samples of the
// other way. All ranks choose alike: a way follows from the count of the class's calls and from
// plans, which the ranks agree on in the order of the calls. Pure.
//
//   plan {way, own, samples}:  `own` calls go the plan's way, then `samples` the other way; before
//                              the next one the ranks report their times and agree on a plan
//
// No clock is shared: each rank times its own calls, and a class is as slow as its slowest rank. The
// root of a tree leaves early, and in a row of broadcasts its children's calls show that. A time is
// the mean of all timed calls but the longest, for the machine may stall one. A median would hide
// losses: with 5 % of loss most broadcasts lose nothing, though all together take much longer.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "collectives/core/collective.h"

namespace cepheus::coll {

// kNetwork: a broadcast by multicast, another collective in the switches.
enum class Way : std::uint8_t { kNetwork, kOther };
constexpr Way other(Way way) { return way == Way::kNetwork ? Way::kOther : Way::kNetwork; }

// Calls of one collective. Sizes above half of the class's largest, which is a power of two; barriers
// have none. Calls that the program does not wait for have classes of their own.
struct SizeClass {
  // `size`: bytes of a broadcast, or of each rank's block.
  SizeClass(Collective of, std::size_t size, bool is_blocking)
      : collective(of),
        exponent(static_cast<std::uint8_t>(size == 0 ? 0 : std::bit_width(size - 1))),
        blocking(is_blocking) {}
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
  std::int64_t own = kNone, samples = kNone;

  void take_slower(const Times& others) {
    own = slower(own, others.own);
    samples = slower(samples, others.samples);
  }

 private:
  static std::int64_t slower(std::int64_t a, std::int64_t b) {
    return a == kVoid || b == kVoid ? kVoid : std::max(a, b);
  }
};

// Travels as it is.
struct Plan {
  Way way;
  std::uint32_t own, samples;
  bool goes_on = false;  // times add to those of the plan before
};

class Comparison {
 public:
  // The last of the plan's own calls are timed, at most this number; and the samples. The first
  // of each is not timed: it may set up a group, and waits for ranks that the other way still keeps.
  // A plan that goes on times the first of its own, too.
  static constexpr std::uint32_t kWindow = 64;

  explicit Comparison(const Plan& plan) : plan_(plan) {}

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
  Times times() const { return {own_.mean(), samples_.mean()}; }

 private:
  struct Tally {
    std::chrono::nanoseconds sum{0}, longest{0};
    std::uint32_t count = 0;
    bool is_void = false;

    void add(std::chrono::nanoseconds time) {
      sum += time;
      longest = std::max(longest, time);
      ++count;
    }
    std::int64_t mean() const;
  };
  Tally& tally(const Turn& turn) { return turn.is_sample ? samples_ : own_; }

  Plan plan_;
  std::uint32_t at_ = 0;  // of the plan's calls
  Tally own_, samples_;
};

inline void Comparison::follow(const Plan& plan) {
  plan_ = plan;
  at_ = 0;
  if (!plan.goes_on) own_ = samples_ = {};
}

inline Comparison::Turn Comparison::next() {
  const std::uint32_t at = at_++;
  if (at >= plan_.own) return {other(plan_.way), true, at > plan_.own};
  return {plan_.way, false, (at > 0 || plan_.goes_on) && at + kWindow >= plan_.own};
}

inline std::int64_t Comparison::Tally::mean() const {
  if (is_void) return Times::kVoid;
  if (count < 2) return sum.count();
  return std::max<std::int64_t>(1, (sum - longest).count() / (count - 1));
}

}  // namespace cepheus::coll
