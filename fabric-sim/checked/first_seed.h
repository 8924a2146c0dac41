// Where campaigns and tests begin: at a seed that no day shares with another, or where
// CEPHEUS_FIRST_SEED says, to see a failure of another day again. Alone in its header, for
// simulations that need nothing else of the fabric's.
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
