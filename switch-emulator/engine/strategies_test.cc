#include "switch-emulator/engine/strategies.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/numbering.h"
#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

constexpr Psn kMin(100);

TEST(Strategies, AreWhatTheSwitchIsTold) {
  SwitchConfig config;
  EXPECT_STREQ(Strategies::of(config).numbering->name(), "rebase");
  EXPECT_STREQ(Strategies::of(config).naks->name(), "hold");
  config.rules.source_change = net::SourceChange::kHostSync;
  config.rules.nak_policy = net::NakPolicy::kRewrite;
  config.rules.cnp_policy = net::CnpPolicy::kTmcf;
  EXPECT_STREQ(Strategies::of(config).numbering->name(), "host-sync");
  EXPECT_STREQ(Strategies::of(config).naks->name(), "rewrite");
  const Group group(McstId(), 1, Strategies::of(config));
  EXPECT_STREQ(group.cnps->name(), "tmcf");
}

TEST(NakPolicy, HoldLeavesANakAsItIs) {
  const Nak nak = HoldNaks().for_source({kMin + 7, true, 3}, kMin);
  EXPECT_EQ(nak.psn, kMin + 7);
  EXPECT_TRUE(nak.rnr);
  EXPECT_EQ(nak.timer, 3);
}

TEST(NakPolicy, HoldLetsOneThroughAtOnceOnlyWhereTheRuleOfItsKindIsOff) {
  Rules rules;
  const Nak nak{kMin, false, 0}, rnr{kMin, true, 0};
  EXPECT_FALSE(HoldNaks().is_at_once(nak, rules) || HoldNaks().is_at_once(rnr, rules));
  rules.nak_ordering = false;
  EXPECT_TRUE(HoldNaks().is_at_once(nak, rules));
  EXPECT_FALSE(HoldNaks().is_at_once(rnr, rules));
}

TEST(NakPolicy, RewriteAsksForTheFirstPacketThatAnybodyLacks) {
  const Nak nak = RewriteNaks().for_source({kMin + 7, true, 3}, kMin);
  EXPECT_EQ(nak.psn, kMin + 1);
  EXPECT_TRUE(nak.rnr);
  EXPECT_EQ(nak.timer, 3);
}

TEST(Numbering, SaysWhatAHostCanHaveOutstanding) {
  const Group group(McstId(), 1, Strategies::of(SwitchConfig()));
  const Path path;  // has sent nothing yet
  EXPECT_EQ(Rebasing().first_outstanding(group, path, group.start + 5), group.start);
  EXPECT_EQ(HostSync().first_outstanding(group, path, group.start), group.start);
  EXPECT_EQ(HostSync().first_outstanding(group, path, group.start + 5), std::nullopt)
      << "there only what comes next is sure";
}

TEST(Numbering, IsWhatRegisterTellsTheMembers) {
  EXPECT_EQ(Rebasing().register_flags(), 0);
  EXPECT_EQ(HostSync().register_flags(), wire::MrpHeader::kHostSync);
}

}  // namespace
}  // namespace cepheus::fabric
