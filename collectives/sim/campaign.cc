#include "collectives/sim/campaign.h"

#include <deque>

#include "collectives/sim/rule_off.h"

namespace cepheus::coll::sim {

const std::vector<std::string> kRules = {
#define CEPHEUS_RULE(name, help) #name,
#include "collectives/core/rules.def"
};

JobOutcome run_seed(std::uint64_t seed) { return SimulatedJob(make_plan(seed)).run(); }

JobOutcome run_broadcasts(std::uint64_t seed, const std::vector<std::string>& off) {
  const std::deque<RuleOff> rules_off(off.begin(), off.end());
  JobPlan plan = make_plan(seed);
  plan.reduces = false;
  plan.refused = Refused::kNone;
  return SimulatedJob(plan).run();
}

}  // namespace cepheus::coll::sim
