#include "collectives/sim/campaign.h"

#include "collectives/core/rules.h"

namespace cepheus::coll::sim {

namespace {

bool* find_rule(std::string_view name) {
#define CEPHEUS_RULE(rule, says) \
  if (name == #rule) return &rules.rule;
#include "collectives/core/rules.def"
  return nullptr;
}

}  // namespace

const std::vector<Rule> kRules = {
#define CEPHEUS_RULE(name, says) {#name, says},
#include "collectives/core/rules.def"
};

RuleOff::RuleOff(std::string_view rule) : rule_(find_rule(rule)) {
  if (rule_ != nullptr) *rule_ = false;
}

RuleOff::~RuleOff() {
  if (rule_ != nullptr) *rule_ = true;
}

JobOutcome run_seed(std::uint64_t seed) { return SimulatedJob(make_plan(seed)).run(); }

SeedsResult run_seeds(std::uint64_t first, std::uint64_t seeds, std::size_t most,
                      const std::function<void(const SeedFailure&)>& on_failure) {
  SeedsResult result;
  for (std::uint64_t seed = first; seed - first < seeds; ++seed) {
    const JobOutcome outcome = run_seed(seed);
    ++result.seeds;
    result.sum += outcome;
    if (!outcome.failure) continue;
    result.failures.push_back({seed, *outcome.failure});
    on_failure(result.failures.back());
    if (result.failures.size() >= most) break;
  }
  return result;
}

RuleResult check_rule(const Rule& rule, std::uint64_t first, std::uint64_t seeds) {
  RuleResult result{rule, 0, ""};
  for (std::uint64_t seed = first; seed - first < seeds; ++seed) {
    const auto failure = [&] {
      const RuleOff off(rule.name);
      return run_seed(seed).failure;
    }();
    // A seed that fails with every rule on says nothing about this one.
    if (!failure || run_seed(seed).failure) continue;
    result.seed = seed;
    result.text = *failure;
    break;
  }
  return result;
}

}  // namespace cepheus::coll::sim
