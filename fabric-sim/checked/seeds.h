// Runs many seeds of a simulation, and finds those that fail. An outcome has an optional `failure`,
// and += adds outcomes up.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

namespace cepheus::sim {

template <typename Outcome>
struct FailedSeed {
  std::uint64_t seed = 0;
  typename decltype(Outcome::failure)::value_type failure;
};

template <typename Outcome>
struct SeedsResult {
  std::uint64_t seeds = 0;                    // number of seeds run
  Outcome sum{};                              // of all outcomes, without `failure`
  std::vector<FailedSeed<Outcome>> failures;  // by seed
};

// Runs run(seed) for seeds [first, first + seeds) on `jobs` threads; ends early at `most` failures.
// `on_failure` is called for each failure as it is found, one call at a time.
template <typename Run, typename OnFailure,
          typename Outcome = std::invoke_result_t<Run, std::uint64_t>>
auto run_seeds(std::uint64_t first, std::uint64_t seeds, unsigned jobs, std::size_t most, Run run,
               OnFailure on_failure) {
  SeedsResult<Outcome> result;
  std::mutex mutex;  // guards `result` and calls of `on_failure`
  std::atomic<std::uint64_t> next{0};
  const auto work = [&] {
    for (std::uint64_t at = next++; at < seeds; at = next++) {
      const Outcome outcome = run(first + at);
      const std::lock_guard lock(mutex);
      ++result.seeds;
      result.sum += outcome;
      if (!outcome.failure) continue;
      result.failures.push_back({first + at, *outcome.failure});
      on_failure(result.failures.back());
      if (result.failures.size() >= most) next = seeds;
    }
  };
  std::vector<std::jthread> others;
  for (unsigned i = 1; i < jobs; ++i) others.emplace_back(work);
  work();
  others.clear();
  std::ranges::sort(result.failures, {}, &FailedSeed<Outcome>::seed);
  return result;
}

// The first seed that fails by unsafe(seed) and holds by sound(seed). A seed that fails with every
// rule on proves nothing about the rule that is off.
template <typename Unsafe, typename Sound,
          typename Outcome = std::invoke_result_t<Unsafe, std::uint64_t>>
std::optional<FailedSeed<Outcome>> first_failure(std::uint64_t first, std::uint64_t seeds,
                                                 Unsafe unsafe, Sound sound) {
  for (std::uint64_t seed = first; seed - first < seeds; ++seed) {
    const Outcome outcome = unsafe(seed);
    if (outcome.failure && !sound(seed).failure) return FailedSeed<Outcome>{seed, *outcome.failure};
  }
  return std::nullopt;
}

}  // namespace cepheus::sim
