#include "net/rules.h"

#include <gtest/gtest.h>

namespace cepheus::net {
namespace {

TEST(Rules, AreSetByName) {
  for (const Rule& rule : kRules) {
    Rules rules;
    EXPECT_TRUE(set_rule(rules, rule.name, false)) << rule.name;
    EXPECT_NE(rules, Rules()) << rule.name;
    EXPECT_TRUE(set_rule(rules, rule.name, true)) << rule.name;
    EXPECT_EQ(rules, Rules()) << rule.name;
  }
  Rules rules;
  set_rule(rules, "gate", false);
  EXPECT_FALSE(rules.gate);
  EXPECT_TRUE(rules.nak_ordering);
  EXPECT_FALSE(set_rule(rules, "no such rule", false));
}

}  // namespace
}  // namespace cepheus::net
