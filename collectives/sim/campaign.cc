#include "collectives/sim/campaign.h"

#include <deque>
#include <string_view>

#include "collectives/core/rules.h"

namespace cepheus::coll::sim {

namespace {

// Switches a rule off while it is in scope.
class RuleOff {
 public:
  explicit RuleOff(std::string_view name) : rule_(find(name)) { *rule_ = false; }
  ~RuleOff() { *rule_ = true; }
  RuleOff(const RuleOff&) = delete;
  RuleOff& operator=(const RuleOff&) = delete;

 private:
  static bool* find(std::string_view name) {
#define CEPHEUS_RULE(rule, help) \
  if (name == #rule) return &rules.rule;
#include "collectives/core/rules.def"
    return nullptr;
  }

  bool* const rule_;
};

}  // namespace

const std::vector<std::string> kRules = {
#define CEPHEUS_RULE(name, help) #name,
#include "collectives/core/rules.def"
};

JobOutcome run_seed(std::uint64_t seed, const std::vector<std::string>& off) {
  const std::deque<RuleOff> rules_off(off.begin(), off.end());
  return SimulatedJob(make_plan(seed)).run();
}

}  // namespace cepheus::coll::sim
