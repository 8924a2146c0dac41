// Members of a reduction group without queue pairs, on virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "libmcast/engine/ending.h"
#include "libmcast/engine/test_member.h"

namespace cepheus::mcast {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::MrpReduction;

constexpr std::uint16_t kMtu = 1024;

MrpReduction gather(std::uint16_t window) { return {MrpReduction::kValues, kMtu, window}; }

class TwoReducers : public testing::Test {
 protected:
  // The leader's REGISTER.
  wire::MrpMessage lead(Member& member) {
    mrp::RegistrationConfig config = mrp::test::leader_config();
    config.host = leader_.group().member().host;
    const auto led = leader_.engine.lead(now_, config, {mrp::test::kGroup, mrp::test::kEpoch},
                                         names_, leader_.out);
    if (!led) throw std::runtime_error(led.error().text);
    const wire::MrpMessage registered = leader_.out.messages.back();
    deliver(leader_, member, now_);
    return registered;
  }
  std::vector<std::string> look(Member& member, wire::Duration after) {
    now_ += after;
    member.handle(&GroupEngine::look_for_lagging_members, now_);
    member.handle(&GroupEngine::look, now_);
    std::vector<std::string> types;
    for (const auto& m : std::exchange(member.out.messages, {})) {
      types.emplace_back(to_string(m.header.type));
    }
    return types;
  }

  wire::Instant now_ = mrp::test::kStart;
  const std::vector<mrp::MrpMember> names_ = mrp::test::members(2);
  Member leader_{0, false, kMtu, true, gather(64)}, member_{1, false, kMtu, true, gather(64)};
};

TEST_F(TwoReducers, RegisterTheirKindAndEndWithALostMember) {
  const wire::MrpMessage registered = lead(member_);
  wire::MrpReduction sent = gather(64);
  sent.ascends = true;
  EXPECT_EQ(registered.reduction, sent);
  EXPECT_EQ(registered.header.flags & wire::MrpHeader::kLossEnds, wire::MrpHeader::kLossEnds);
  EXPECT_EQ(leader_.group().status(), MCAST_OK);
  EXPECT_EQ(member_.group().status(), MCAST_OK);
}

TEST_F(TwoReducers, FailIfTheirWindowsDiffer) {
  Member other(1, false, kMtu, true, gather(32));
  lead(other);
  EXPECT_EQ(other.group().status(), MCAST_ERR_REJECTED);
  EXPECT_THAT(other.group().reason(), HasSubstr("windows of 64 units, and this member of 32"));
  EXPECT_EQ(leader_.group().status(), MCAST_ERR_REJECTED);
}

TEST_F(TwoReducers, FailIfOneIsOfAnotherKind) {
  Member other(1, false, kMtu);
  lead(other);
  EXPECT_EQ(leader_.group().status(), MCAST_ERR_REJECTED);
  EXPECT_THAT(leader_.group().reason(), HasSubstr("is of another kind"));
}

// The switch has stored the contribution, so no send is outstanding.
TEST_F(TwoReducers, ComplainWhileAResultIsMissing) {
  lead(member_);
  EXPECT_THAT(look(member_, 600ms), IsEmpty()) << "it waits for nothing";
  member_.engine.work().on_receive_posted();
  member_.engine.work().on_send_posted(1);
  member_.end_send(1);
  EXPECT_THAT(look(member_, 600ms), IsEmpty()) << "the first look at this unit";
  EXPECT_THAT(look(member_, 500ms), ElementsAre("complain"));
  member_.end_receive();
  EXPECT_THAT(look(member_, 600ms), IsEmpty()) << "the result has come";
}

// A reduction lane posts all its receives when it is made.
TEST_F(TwoReducers, RequestNothingWhileTheGroupIsIdle) {
  lead(member_);
  for (Member* each : {&leader_, &member_}) each->engine.work().on_receive_posted();
  for (int half_second = 0; half_second < 120; ++half_second) {
    ASSERT_THAT(look(leader_, 250ms), IsEmpty()) << half_second;
    ASSERT_THAT(look(member_, 250ms), IsEmpty()) << half_second;
  }
  member_.engine.work().on_send_posted(1);
  std::vector<std::string> sent;
  for (int i = 0; i < 6; ++i) {
    for (const std::string& type : look(member_, 250ms)) sent.push_back(type);
  }
  EXPECT_THAT(sent, ElementsAre("complain", "complain")) << "for a late member, and for presence";
}

// No other member acknowledges a contribution.
TEST_F(TwoReducers, NameTheSwitchIfNoSendCompletes) {
  lead(member_);
  member_.engine.work().on_send_posted(1);
  for (int i = 0; i < 100 && member_.group().status() == MCAST_OK; ++i) {
    now_ += 100ms;
    member_.handle(&GroupEngine::look, now_);
    deliver(leader_, member_, now_);  // the leader answers
  }
  EXPECT_THAT(member_.group().reason(),
              HasSubstr("no send completed for 8000 ms: its switch stopped acknowledging"));
}

// A leader of another make may choose less than the path MTU.
TEST_F(TwoReducers, HaveTheLeadersUnit) {
  Member leader(0, false, kMtu, true, MrpReduction{MrpReduction::kValues, 256, 64});
  mrp::RegistrationConfig config = mrp::test::leader_config();
  config.host = leader.group().member().host;
  ASSERT_TRUE(
      leader.engine.lead(now_, config, {mrp::test::kGroup, mrp::test::kEpoch}, names_, leader.out));
  deliver(leader, member_, now_);
  EXPECT_EQ(member_.group().status(), MCAST_OK);
  EXPECT_EQ(member_.engine.work().path_mtu(), 256u);
}

TEST_F(TwoReducers, DoNotComplainWhileTheProgramDoesNotLook) {
  lead(member_);
  member_.engine.work().on_send_posted(1);
  for (int i = 0; i < 4; ++i) {
    now_ += 500ms;
    member_.handle(&GroupEngine::look_for_lagging_members, now_);
  }
  EXPECT_THAT(member_.out.messages, IsEmpty()) << "the result may lie in the completion queue";
}

TEST(Ending, OfAReductionNamesItsCause) {
  const wire::Ipv4 leader(10, 0, 0, 1);
  const Ending differ = ending_of(true, wire::MrpReject::kMismatch, leader);
  EXPECT_EQ(differ.status, MCAST_ERR_FABRIC);
  EXPECT_THAT(differ.reason, HasSubstr("different reductions"));
  const Ending refused = ending_of(true, wire::MrpReject::kResultRefused, leader);
  EXPECT_EQ(refused.status, MCAST_ERR_FABRIC);
  EXPECT_THAT(refused.reason, HasSubstr("refused a result"));
  const Ending unserved = ending_of(true, wire::MrpReject::kOperation, leader);
  EXPECT_EQ(unserved.status, MCAST_ERR_FABRIC);
  EXPECT_THAT(unserved.reason, HasSubstr("that its switch does not serve"));
}

}  // namespace
}  // namespace cepheus::mcast
