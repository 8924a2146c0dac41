// SplitMix64 (Steele, Lea, Flood 2014), with the same numbers on every machine: for numbers that
// should look unrelated, and for seeded random numbers. Not for secrets.
#pragma once

#include <cstdint>

namespace cepheus::wire {

inline constexpr std::uint64_t kSplitMixStep = 0x9E3779B97F4A7C15;

// The first output of the generator with this state; every input bit affects every output bit.
constexpr std::uint64_t splitmix(std::uint64_t state) {
  std::uint64_t z = state + kSplitMixStep;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}
// Output number `n` of the generator with this seed, counted from 0.
constexpr std::uint64_t splitmix(std::uint64_t seed, std::uint64_t n) {
  return splitmix(seed + n * kSplitMixStep);
}

// Every seed is good, 0 included.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    const std::uint64_t z = splitmix(state_);
    state_ += kSplitMixStep;
    return z;
  }
  // In [0, 1).
  double fraction() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace cepheus::wire
