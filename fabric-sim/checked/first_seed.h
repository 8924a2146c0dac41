// First seed of campaigns and tests: a different one each day, or CEPHEUS_FIRST_SEED, to repeat
// another day's failure. It has its own header for simulations that use nothing else of the
// fabric's.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>

namespace cepheus::sim {

inline std::uint64_t first_seed() {
  constexpr std::uint64_t kSeedsADay = 1'000'000;
  if (const char* chosen = std::getenv("CEPHEUS_FIRST_SEED")) {
    return std::strtoull(chosen, nullptr, 10);
  }
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  return static_cast<std::uint64_t>(today.time_since_epoch().count()) * kSeedsADay + 1;
}

}  // namespace cepheus::sim
