// Is every safety rule (net/rules.h) needed, and would we notice if it were gone? Each is switched off
// in turn; some seed must fail.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric-sim/checked/findings.h"

namespace cepheus::sim {

struct MutationResult {
  std::string rule;
  std::string where;  // on what plans: "", "lossless links"
  bool caught = false;
  std::uint64_t seed = 0;  // the first that fails without the rule, and not with it
  Finding finding{};       // ... and how
};

// Looks for each rule's first seed in [first_seed, first_seed + seeds) that fails without it and
// holds with it. Some rules are looked for on several kinds of plans.
std::vector<MutationResult> check_mutations(std::uint64_t first_seed, std::uint64_t seeds);
// The list as a table in Markdown, as docs/protocol.md has it.
std::string to_table(const std::vector<MutationResult>& results);

}  // namespace cepheus::sim
