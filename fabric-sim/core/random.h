// The simulation's only source of chance: a generator that a seed determines on every machine.
//
// The standard library's distributions differ between implementations; these do not.
#pragma once

#include <cstdint>

#include "wire/types.h"

namespace cepheus::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // SplitMix64 (Steele, Lea, Flood 2014): every seed is a good one, 0 included.
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }  // precondition: bound > 0
  // Both ends included.
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(below(std::uint64_t{high} - low + 1));
  }
  wire::Duration between(wire::Duration low, wire::Duration high) {
    const auto span = static_cast<std::uint64_t>((high - low).count());
    return low + wire::Duration{static_cast<std::int64_t>(below(span + 1))};
  }
  double fraction() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // [0, 1)
  bool chance(double probability) { return fraction() < probability; }

 private:
  std::uint64_t state_;
};

}  // namespace cepheus::sim
