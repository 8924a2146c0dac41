#include "switch-emulator/engine/group/group.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/registration/claim.h"
#include "switch-emulator/engine/test_payloads.h"

namespace cepheus::fabric {
namespace {

// A group of three hosts, on ports 0 to 2; the leader is on port 0.
class GroupTest : public testing::Test {
 protected:
  GroupTest() {
    config_.ports.resize(3);
    mft_.behaviour = *make_behaviour(mft_, config_);
    for (std::uint16_t port = 0; port < 3; ++port) mft_.add_path(PortId(port), true);
    mft_.leader = 0;
  }
  Group& served() { return static_cast<Group&>(*mft_.behaviour); }

  SwitchConfig config_;
  Counters counters_{3};
  Pauses pauses_{3};
  Scratch scratch_;
  TestPayloads payloads_;
  HeldFrames held_{3};
  SwitchOutput out_;
  Mft mft_{McstId(198, 18, 0, 7), 1};
  Call call_{config_, counters_, pauses_, scratch_, payloads_,
             held_,   Instant(), out_,    PortId(), wire::Icrc::kNone};
};

TEST_F(GroupTest, KeepsTheEvidenceOfAPathThatGetsAnotherNumber) {
  served().evidence[2].packets = 5;
  mft_.remove_path(call_, Leader(), 1);
  EXPECT_EQ(mft_.find(PortId(2)), 1);
  EXPECT_EQ(served().evidence[1].packets, 5u);
  mft_.check_consistent(0);
}

TEST_F(GroupTest, ForgetsTheRegionsOfAMemberThatLeaves) {
  const std::vector<wire::MrpRegion> one{{1, 11, 0x1000, 64}};
  served().own_regions().publish(PortId(1), 1, one);
  served().own_regions().publish(PortId(2), 1, one);
  mft_.remove_path(call_, Leader(), 1);
  EXPECT_EQ(served().regions->find(PortId(1), 1), nullptr);
  EXPECT_NE(served().regions->find(PortId(2), 1), nullptr);
  mft_.check_consistent(0);
}

TEST_F(GroupTest, ServesAGroupAsTheSwitchIsConfigured) {
  EXPECT_STREQ(served().numbering.name(), "rebase");
  EXPECT_EQ(served().cnps->to_text(), "worst-path, windows of 25ms or more");
  config_.rules.source_change = net::SourceChange::kHostSync;
  config_.rules.cnp_policy = net::CnpPolicy::kTmcf;
  config_.rules.write_mode = net::WriteMode::kSameKey;
  const Group other(mft_, config_);
  EXPECT_STREQ(other.numbering.name(), "host-sync");
  EXPECT_EQ(other.cnps->to_text(), "tmcf, slots of 25ms");
  EXPECT_EQ(other.writes, net::WriteMode::kSameKey);
}

TEST_F(GroupTest, KnowsTheFirstPacketThatAHostCanHaveOutstanding) {
  const Psn start = served().start;  // no host has sent yet
  EXPECT_EQ(Rebasing(true).first_outstanding(served(), 1, start + 5), start);
  EXPECT_EQ(HostSync(true).first_outstanding(served(), 1, start), start);
  EXPECT_EQ(HostSync(true).first_outstanding(served(), 1, start + 5), std::nullopt)
      << "only the packet that comes next is certain there";
}

TEST(Numbering, IsAnnouncedInRegister) {
  EXPECT_EQ(Rebasing(true).register_flags(), 0);
  EXPECT_EQ(HostSync(true).register_flags(), wire::MrpHeader::kHostSync);
}

}  // namespace
}  // namespace cepheus::fabric
