// Shares of a resource with many users: dynamic thresholds (Choudhury and Hahne 1998).
//
// A user may hold a fixed multiple of the free part. With a multiple of 2, one user alone gets two
// thirds, and two users get two fifths each. One user alone always leaves a third for others.
#pragma once

#include <cstdint>

namespace cepheus::wire {

// Limit of one user while `free` is left.
template <typename Times>
constexpr std::uint64_t dynamic_threshold(Times times, std::uint64_t free) {
  return static_cast<std::uint64_t>(times * static_cast<Times>(free));
}

// Holdings of one user: frames, slots, bytes.
template <typename Amount, std::uint64_t kTimes = 2>
class Share {
 public:
  static constexpr std::uint64_t threshold(std::uint64_t free) {
    return dynamic_threshold(kTimes, free);
  }
  // Limit of one user of `all` while there is no other.
  static constexpr std::uint64_t of_one(std::uint64_t all) { return all * kTimes / (kTimes + 1); }
  // Whether the user may take more.
  bool has_space(std::uint64_t free) const { return held_ < threshold(free); }
  void add(Amount amount = 1) { held_ = static_cast<Amount>(held_ + amount); }
  void remove(Amount amount = 1) { held_ = static_cast<Amount>(held_ - amount); }
  Amount held() const { return held_; }

 private:
  Amount held_ = 0;
};

}  // namespace cepheus::wire
