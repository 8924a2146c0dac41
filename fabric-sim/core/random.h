// The simulation's only source of randomness: a seeded generator, with the same numbers on every
// machine.
//
// The standard library's distributions differ between implementations; these do not.
#pragma once

#include <array>
#include <cstdint>

#include "wire/splitmix.h"
#include "wire/types.h"

namespace cepheus::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : numbers_(seed) {}

  std::uint64_t next() { return numbers_.next(); }
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
  template <typename T, std::size_t N>
  const T& one_of(const std::array<T, N>& values) {
    return values[below(N)];
  }
  bool chance(double probability) { return fraction() < probability; }

 private:
  wire::SplitMix numbers_;
};

}  // namespace cepheus::sim
