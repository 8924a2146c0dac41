// Simulated jobs by seeds, and the rules of the failover (core/rules.h), each of which some seed
// needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/sim/simulated_job.h"

namespace cepheus::coll::sim {

extern const std::vector<std::string> kRules;

// Half of the jobs reduce, too.
JobOutcome run_seed(std::uint64_t seed);
// Broadcasts alone, without the rules `off`, which are some of kRules.
JobOutcome run_broadcasts(std::uint64_t seed, const std::vector<std::string>& off = {});

}  // namespace cepheus::coll::sim
