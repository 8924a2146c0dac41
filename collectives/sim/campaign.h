// Many simulated jobs; and whether each rule of the failover (core/rules.h) is needed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/sim/simulated_job.h"

namespace cepheus::coll::sim {

JobOutcome run_seed(std::uint64_t seed);

struct SeedFailure {
  std::uint64_t seed;
  std::string text;
};
struct SeedsResult {
  std::uint64_t seeds = 0;  // that were run
  JobOutcome sum;           // without `failure`
  std::vector<SeedFailure> failures;
};
// Seeds [first, first + seeds); ends early at `most` failures.
SeedsResult run_seeds(std::uint64_t first, std::uint64_t seeds, std::size_t most,
                      const std::function<void(const SeedFailure&)>& on_failure);

// Switches a rule off while it is in scope.
class RuleOff {
 public:
  explicit RuleOff(std::string_view rule);
  ~RuleOff();
  RuleOff(const RuleOff&) = delete;
  RuleOff& operator=(const RuleOff&) = delete;
  bool exists() const { return rule_ != nullptr; }

 private:
  bool* rule_;
};

struct Rule {
  const char* name;
  const char* says;
};
extern const std::vector<Rule> kRules;

struct RuleResult {
  Rule rule;
  std::uint64_t seed = 0;  // the first that fails without the rule and not with it
  std::string text;        // how; empty: none
};
RuleResult check_rule(const Rule& rule, std::uint64_t first, std::uint64_t seeds);

}  // namespace cepheus::coll::sim
