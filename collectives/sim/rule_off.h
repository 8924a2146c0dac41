// Switches a rule of core/rules.h off while it is in scope.
#pragma once

#include <string_view>

#include "collectives/core/rules.h"

namespace cepheus::coll::sim {

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
#define CEPHEUS_RULE(rule, help) \
  if (name == #rule) return &rules.rule;
#include "collectives/core/rootless_rules.def"
    return nullptr;
  }

  bool* const rule_;
};

}  // namespace cepheus::coll::sim
