#include "replica/sim/volume_campaign.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace cepheus::replica::sim {

VolumeResult run_seeds(std::uint64_t first, std::uint64_t seeds, unsigned jobs, const Rules& rules,
                       std::size_t most,
                       const std::function<void(const VolumeFailure&)>& on_failure) {
  VolumeResult result;
  std::mutex mutex;  // guards `result`, and calls of `on_failure`
  std::atomic<std::uint64_t> next{0};
  const auto work = [&] {
    for (std::uint64_t at = next++; at < seeds; at = next++) {
      const World::Outcome outcome = run_seed(first + at, rules);
      const std::lock_guard lock(mutex);
      ++result.seeds;
      result.sum.steps += outcome.steps;
      result.sum.operations += outcome.operations;
      result.sum.acknowledged += outcome.acknowledged;
      result.sum.evicted += outcome.evicted;
      result.sum.takeovers += outcome.takeovers;
      if (!outcome.failure) continue;
      result.failures.push_back({first + at, *outcome.failure});
      if (on_failure) on_failure(result.failures.back());
      if (result.failures.size() >= most) next = seeds;
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < jobs; ++i) others.emplace_back(work);
    work();
  }
  std::sort(result.failures.begin(), result.failures.end(),
            [](const VolumeFailure& a, const VolumeFailure& b) { return a.seed < b.seed; });
  return result;
}

std::vector<RuleResult> check_rules(std::uint64_t first, std::uint64_t seeds) {
  std::vector<RuleResult> results;
  for (const char* const rule : kRules) {
    Rules rules;
    set_rule(rules, rule, false);
    RuleResult result{rule, 0, {}};
    for (std::uint64_t seed = first; seed - first < seeds; ++seed) {
      const auto outcome = run_seed(seed, rules);
      // A seed that fails with every rule on says nothing about this one.
      if (!outcome.failure || run_seed(seed).failure) continue;
      result.seed = seed;
      result.text = *outcome.failure;
      break;
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::string replay_line(std::uint64_t seed, const std::vector<std::string>& disabled) {
  std::string line = "cepheus-volume-sim --seed " + std::to_string(seed);
  for (const std::string& rule : disabled) line += " --disable " + rule;
  return line + " --trace";
}

}  // namespace cepheus::replica::sim
