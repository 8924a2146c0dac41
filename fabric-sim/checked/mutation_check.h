// Switches each safety rule (net/rules.h) off in turn; some seed must fail. It proves that each
// rule is needed, and that its loss would be noticed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric-sim/checked/findings.h"
#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

struct MutationResult {
  std::string rule;
  std::string where;  // kind of plans: "", "lossless links"
  bool caught = false;
  std::uint64_t seed = 0;  // the first that fails without the rule, but not with it
  Finding failure{};       // ... and how it fails
};

// Searches for each rule's first seed in [first_seed, first_seed + seeds) that fails without it and
// holds with it. Some rules are checked on several kinds of plans. All plans have `options`, too.
std::vector<MutationResult> check_mutations(std::uint64_t first_seed, std::uint64_t seeds,
                                            const PlanOptions& options = {});
// The results as a Markdown table, as in docs/protocol.md.
std::string to_table(const std::vector<MutationResult>& results);

}  // namespace cepheus::sim
