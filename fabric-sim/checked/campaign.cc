#include "fabric-sim/checked/campaign.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace cepheus::sim {

CampaignResult run_campaign(const Campaign& campaign,
                            const std::function<void(const Failure&)>& on_failure) {
  CampaignResult result;
  std::mutex mutex;  // guards `result` and calls of `on_failure`
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

}  // namespace cepheus::sim
