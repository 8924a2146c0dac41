// Spreads small numbers over 64 bits: numbers that should look unrelated on different hosts.
#pragma once

#include <cstdint>

namespace cepheus::rnic {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014), over a seed and a value.
constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t value) {
  std::uint64_t z = seed + (value + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

}  // namespace cepheus::rnic
