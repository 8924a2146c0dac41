#include "switch-emulator/engine/strategies.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/numbering.h"
#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

TEST(Strategies, AreWhatTheSwitchIsTold) {
  SwitchConfig config;
  EXPECT_STREQ(Strategies::of(config).numbering->name(), "rebase");
  config.rules.source_change = net::SourceChange::kHostSync;
  config.rules.cnp_policy = net::CnpPolicy::kTmcf;
  EXPECT_STREQ(Strategies::of(config).numbering->name(), "host-sync");
  const Group group(McstId(), 1, Strategies::of(config));
  EXPECT_STREQ(group.cnps->name(), "tmcf");
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
