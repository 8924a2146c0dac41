// Many seeds, in parallel: which of them failed, and what all have been through.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fabric-sim/checked/group_scenario.h"

namespace cepheus::sim {

struct Campaign {
  std::uint64_t first = 1;
  std::uint64_t seeds = 0;
  PlanOptions options;
  unsigned jobs = 1;               // threads; a run is one thread's own
  std::size_t most_failures = 10;  // then it ends early
};

struct Failure {
  std::uint64_t seed = 0;
  Finding finding;
};

struct CampaignResult {
  std::uint64_t seeds = 0;  // that were run
  Outcome sum;
  std::vector<Failure> failures;  // by seed
};

// `on_failure` hears of each failure as it is found, one at a time.
CampaignResult run_campaign(const Campaign& campaign,
                            const std::function<void(const Failure&)>& on_failure = {});

}  // namespace cepheus::sim
