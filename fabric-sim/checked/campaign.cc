#include "fabric-sim/checked/campaign.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace cepheus::sim {

namespace {

constexpr std::uint64_t kSeedsADay = 1'000'000;

}  // namespace

CampaignResult run_campaign(const Campaign& campaign,
                            const std::function<void(const Failure&)>& on_failure) {
  CampaignResult result;
  std::mutex mutex;  // guards `result`, and calls of `on_failure`
  std::atomic<std::uint64_t> next{0};
  const auto work = [&] {
    Outcome sum;
    std::uint64_t seeds = 0;
    for (std::uint64_t at = next++; at < campaign.seeds; at = next++) {
      const std::uint64_t seed = campaign.first + at;
      const Outcome outcome = run_seed(seed, campaign.options);
      sum += outcome;
      ++seeds;
      if (!outcome.finding) continue;
      const std::lock_guard lock(mutex);
      result.failures.push_back({seed, *outcome.finding});
      if (on_failure) on_failure(result.failures.back());
      if (result.failures.size() >= campaign.most_failures) next = campaign.seeds;
    }
    const std::lock_guard lock(mutex);
    result.sum += sum;
    result.seeds += seeds;
  };
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < campaign.jobs; ++i) others.emplace_back(work);
    work();
  }
  std::sort(result.failures.begin(), result.failures.end(),
            [](const Failure& a, const Failure& b) { return a.seed < b.seed; });
  return result;
}

std::uint64_t first_seed() {
  if (const char* chosen = std::getenv("CEPHEUS_FIRST_SEED")) {
    return std::strtoull(chosen, nullptr, 10);
  }
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  return static_cast<std::uint64_t>(today.time_since_epoch().count()) * kSeedsADay + 1;
}

}  // namespace cepheus::sim
