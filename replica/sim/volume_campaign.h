// Many seeds of a volume; and whether each of its rules is needed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "replica/sim/world.h"

namespace cepheus::replica::sim {

struct VolumeFailure {
  std::uint64_t seed = 0;
  std::string text;
};

struct VolumeResult {
  std::uint64_t seeds = 0;  // that were run
  World::Outcome sum;       // without `failure`
  std::vector<VolumeFailure> failures;
};

// Seeds [first, first + seeds) on `jobs` threads; ends early at `most` failures.
VolumeResult run_seeds(std::uint64_t first, std::uint64_t seeds, unsigned jobs, const Rules& rules,
                       std::size_t most,
                       const std::function<void(const VolumeFailure&)>& on_failure = {});

struct RuleResult {
  std::string rule;
  std::uint64_t seed = 0;  // the first that fails without the rule and not with it; 0: none
  std::string text;
};
std::vector<RuleResult> check_rules(std::uint64_t first, std::uint64_t seeds);

// The line that shows a seed again.
std::string replay_line(std::uint64_t seed, const std::vector<std::string>& disabled);

}  // namespace cepheus::replica::sim
