// Shares of something that many users have in common: dynamic thresholds (Choudhury and Hahne
// 1998).
//
// A user may hold a fixed number of times as much as is free. With 2 times, one user alone gets two
// thirds of it, two users get two fifths each. A third is left for others, whatever one user does.
#pragma once

#include <cstdint>

namespace cepheus::wire {

// What one user may hold while `free` is left.
template <typename Times>
constexpr std::uint64_t dynamic_threshold(Times times, std::uint64_t free) {
  return static_cast<std::uint64_t>(times * static_cast<Times>(free));
}

// What one user holds: frames, slots, bytes.
template <typename Amount, std::uint64_t kTimes = 2>
class Share {
 public:
  static constexpr std::uint64_t threshold(std::uint64_t free) {
    return dynamic_threshold(kTimes, free);
  }
  // Whether the user may take more.
  bool has_room(std::uint64_t free) const { return held_ < threshold(free); }
  void add(Amount amount = 1) { held_ = static_cast<Amount>(held_ + amount); }
  void remove(Amount amount = 1) { held_ = static_cast<Amount>(held_ - amount); }
  Amount held() const { return held_; }

 private:
  Amount held_ = 0;
};

}  // namespace cepheus::wire
