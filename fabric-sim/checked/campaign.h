// Runs many seeds in parallel: lists those that fail, and sums up the events of all runs.
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
  unsigned jobs = 1;               // threads; each run uses one thread
  std::size_t most_failures = 10;  // the campaign ends early at this number
};

struct Failure {
  std::uint64_t seed = 0;
  Finding finding;
};

struct CampaignResult {
  std::uint64_t seeds = 0;  // run in all
  Outcome sum;
  std::vector<Failure> failures;  // by seed
};

// `on_failure` is called for each failure as it is found, one call at a time.
CampaignResult run_campaign(const Campaign& campaign,
                            const std::function<void(const Failure&)>& on_failure = {});

}  // namespace cepheus::sim
