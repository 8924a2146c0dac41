// Which communicators, and which of their calls, multicast may serve. Every rank decides alike,
// because it counts the same calls and bytes. Pure.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "collectives/core/parameters.h"

namespace cepheus::coll {

struct CommunicatorFacts {
  int size = 0;
  bool is_inter = false;         // between two groups of ranks
  bool outlives_deaths = false;  // the program continues when a rank has died: multicast would wait
};
enum class Eligibility : std::uint8_t { kEligible, kNot, kTooFewMembers };
inline Eligibility eligibility_of(const CommunicatorFacts& facts, const Parameters& parameters) {
  if (parameters.chosen_mode() == Mode::kOff || facts.is_inter || facts.outlives_deaths ||
      facts.size < 2)
    return Eligibility::kNot;
  return facts.size < parameters.min_members ? Eligibility::kTooFewMembers : Eligibility::kEligible;
}

// Setting up a group costs more than a few broadcasts gain: the first ones of a communicator go by
// the host's own algorithms.
class FirstCalls {
 public:
  // One more of this number of bytes, a broadcast or a reduction. True from the call on that earns
  // the group.
  bool earn(Collective collective, std::uint64_t bytes, const Parameters& parameters);
  bool have_earned() const { return earned_.load(std::memory_order_relaxed); }
  // True for the first call of all.
  bool is_first() const { return calls_.load(std::memory_order_relaxed) == 1; }

 private:
  std::atomic<bool> earned_{false};
  std::atomic<std::uint64_t> calls_{0}, bytes_{0};
};

// The calls at which ranks without a device look for one again: after 64, then after four times as
// many each time.
class LookAgain {
 public:
  // Counts a call. True if the ranks look again now.
  bool count();

 private:
  static constexpr std::uint64_t kFactor = 4, kMost = 1 << 20;
  std::atomic<std::uint64_t> calls_{0};
  std::uint64_t due_ = 64;
};

inline bool FirstCalls::earn(Collective collective, std::uint64_t bytes,
                             const Parameters& parameters) {
  const auto before = static_cast<std::uint64_t>(parameters.calls_before_group(collective));
  const bool is_enough = ++calls_ > before || (bytes_ += bytes) >= parameters.set_up_bytes;
  if (is_enough) earned_ = true;
  return is_enough;
}

inline bool LookAgain::count() {
  if (++calls_ < due_) return false;
  calls_ = 0;
  due_ = std::min(due_ * kFactor, kMost);
  return true;
}

}  // namespace cepheus::coll
