// Message contents that both ends can compute: pseudo-random bytes named by a seed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace cepheus::mcast::e2e {

inline std::vector<std::uint8_t> pattern(std::uint64_t seed, std::size_t size) {
  std::vector<std::uint8_t> data(size);
  for (std::size_t at = 0; at < size; at += 8) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    const std::uint64_t word = seed ^ seed >> 29;
    std::memcpy(data.data() + at, &word, std::min<std::size_t>(8, size - at));
  }
  return data;
}

}  // namespace cepheus::mcast::e2e
