// Members of a group without queue pairs, on virtual time: the test is the network between them.
#include "libmcast/engine/group_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libmcast/engine/test_member.h"

namespace cepheus::mcast {
namespace {

using namespace std::chrono_literals;
using mrp::test::kEpoch;
using mrp::test::kGroup;
using mrp::test::kStart;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TwoMembers : public testing::Test {
 protected:
  mrp::RegistrationConfig config() const {
    mrp::RegistrationConfig c = mrp::test::leader_config();
    c.host = leader_.group().member().host;
    return c;
  }
  void lead() {
    const auto led = leader_.engine.lead(now_, config(), {kGroup, kEpoch}, names_, leader_.out);
    ASSERT_TRUE(led) << led.error().text;
  }
  void deliver() { mcast::deliver(leader_, member_, now_); }
  void give(Member& from, Member& to) const { mcast::give(from, to, now_); }
  // Its switch confirms the only publication.
  void confirm_regions(Member& member) {
    const auto publication = member.engine.regions().take_due(now_);
    ASSERT_TRUE(publication);
    wire::MrpMessage m;
    m.header = publication->header;
    m.header.type = wire::MrpType::kConfirm;
    m.header.flags = static_cast<std::uint16_t>(wire::MrpType::kPublish);
    member.handle(&GroupEngine::on_message, now_, mrp::test::kSwitch, m);
  }
  void become_active() {
    lead();
    deliver();
    ASSERT_EQ(leader_.group().status(), MCAST_OK);
    ASSERT_EQ(member_.group().status(), MCAST_OK);
  }
  static std::vector<std::string> types(const mrp::Outbox& out) {
    std::vector<std::string> all;
    for (const wire::MrpMessage& m : out.messages) all.emplace_back(to_string(m.header.type));
    return all;
  }

  wire::Instant now_ = kStart;
  const std::vector<mrp::MrpMember> names_ = mrp::test::members(2);
  Member leader_{0}, member_{1};
};

TEST_F(TwoMembers, ConnectBeforeEitherIsActive) {
  become_active();
  EXPECT_TRUE(leader_.engine.role().is_leader());
  EXPECT_FALSE(member_.engine.role().is_leader());
  for (const Member* each : {&leader_, &member_}) {
    EXPECT_THAT(each->steps, ElementsAre("connect " + kGroup.to_string()));
    EXPECT_EQ(each->engine.role().mcst_id(), kGroup);
    const Flow& flow = each->group().work().flow();
    EXPECT_EQ(flow.messages_sent + flow.messages_received, 0u);
    EXPECT_EQ(flow.sends_outstanding + flow.receives_posted + flow.sends_completed, 0u);
  }
}

// Otherwise their portions would differ.
TEST_F(TwoMembers, BeginWithOneWindowThoughAnotherComesBeforeTheLastConfirm) {
  lead();
  give(leader_, member_);
  ASSERT_THAT(types(member_.out), ElementsAre("confirm"));
  member_.out.messages[0].path = wire::MrpPath{0, 20};
  give(member_, leader_);
  ASSERT_THAT(types(leader_.out), ElementsAre("connect"));
  give(leader_, member_);
  give(member_, leader_);
  ASSERT_THAT(types(leader_.out), ElementsAre("activate"));
  wire::MrpMessage report = mrp::test::of_group(wire::MrpType::kReport);
  report.path = wire::MrpPath{0, 8};
  leader_.handle(&GroupEngine::on_message, now_, mrp::test::kSwitch, report);
  deliver();
  ASSERT_EQ(leader_.group().status(), MCAST_OK);
  for (const Member* each : {&leader_, &member_}) {
    EXPECT_EQ(each->group().work().window().portion(), 10u);
    EXPECT_EQ(each->group().work().window().limit(), 8u);
  }
}

// RTR waits for the neighbour of the group's address.
TEST_F(TwoMembers, AreNotActiveBeforeBothQueuePairsAreConnected) {
  leader_.is_slow = member_.is_slow = true;
  lead();
  EXPECT_THAT(types(leader_.out), ElementsAre("register"));
  const auto again = leader_.engine.lead(now_, config(), {kGroup, kEpoch}, names_, leader_.out);
  EXPECT_FALSE(again) << "it leads already";
  deliver();
  EXPECT_EQ(member_.group().state(), MCAST_GROUP_REGISTERING);
  member_.handle(&GroupEngine::connected, now_, Expected<void>());
  deliver();
  EXPECT_EQ(member_.group().state(), MCAST_GROUP_REGISTERING) << "the leader is not connected";
  leader_.handle(&GroupEngine::connected, now_, Expected<void>());
  deliver();
  EXPECT_EQ(leader_.group().status(), MCAST_OK);
  EXPECT_EQ(member_.group().status(), MCAST_OK);
}

TEST_F(TwoMembers, AreCountedByTheirLeader) {
  lead();
  EXPECT_EQ(leader_.engine.role().missing_count(), 1u);
  EXPECT_EQ(member_.engine.role().missing_count(), 0u) << "only the leader knows";
  deliver();
  EXPECT_EQ(leader_.engine.role().missing_count(), 0u);
  EXPECT_EQ(leader_.engine.role().member_count(), 2u);
  EXPECT_EQ(member_.engine.role().member_count(), 0u) << "only the leader knows";
  EXPECT_TRUE(leader_.engine.take_registration().of_group);
  EXPECT_EQ(leader_.engine.role().member_count(), 0u) << "its registration was taken";
  EXPECT_EQ(leader_.engine.role().mcst_id(), kGroup);
}

TEST_F(TwoMembers, AreCountedAsMissingIfNothingAnswersTheirLeader) {
  lead();
  leader_.handle(&GroupEngine::on_timer, now_ + config().timeout);
  EXPECT_EQ(leader_.group().status(), MCAST_ERR_TIMED_OUT);
  EXPECT_EQ(leader_.engine.role().missing_count(), 1u);
  EXPECT_EQ(leader_.engine.role().member_count(), 2u);
}

TEST_F(TwoMembers, WaitUntilTheLeadersRegionsAreInForce) {
  leader_.engine.regions().add(now_, {7, 0x77, 0x1000, 64});
  lead();
  deliver();
  EXPECT_EQ(leader_.group().status(), MCAST_INPROGRESS);
  confirm_regions(leader_);
  deliver();
  EXPECT_EQ(leader_.group().status(), MCAST_OK);
}

// A switch that restarts meanwhile, and gets a repeated REGISTER, would not know the regions.
TEST_F(TwoMembers, PublishOnceAllSwitchesHaveTheirTable) {
  for (Member* const each : {&leader_, &member_}) {
    each->engine.regions().add(now_, {7, 0x77, 0x1000, 64});
  }
  lead();
  EXPECT_FALSE(leader_.engine.regions().take_due(now_));
  EXPECT_FALSE(member_.engine.regions().take_due(now_));
  deliver();
  EXPECT_TRUE(leader_.engine.regions().take_due(now_));
  EXPECT_TRUE(member_.engine.regions().take_due(now_));
}

TEST_F(TwoMembers, FailNamingThePartOfTheLeaderThatWasNotReadyInTime) {
  for (const bool connects : {false, true}) {
    Member leader(0), member(1);
    leader.is_slow = true;
    leader.engine.regions().add(now_, {7, 0x77, 0x1000, 64});
    ASSERT_TRUE(leader.engine.lead(now_, config(), {kGroup, kEpoch}, names_, leader.out));
    mcast::deliver(leader, member, now_);
    if (connects) leader.handle(&GroupEngine::connected, now_, Expected<void>());
    leader.handle(&GroupEngine::on_timer, now_ + config().timeout);
    EXPECT_EQ(leader.group().status(), MCAST_ERR_TIMED_OUT);
    EXPECT_THAT(leader.group().reason(),
                HasSubstr(connects ? "the switch did not confirm the leader's memory regions"
                                   : "the leader's queue pair was not connected in time"));
  }
}

TEST_F(TwoMembers, WaitUntilAMembersRegionsAreInForce) {
  member_.engine.regions().add(now_, {7, 0x77, 0x1000, 64});
  lead();
  deliver();
  EXPECT_EQ(member_.group().state(), MCAST_GROUP_REGISTERING);
  EXPECT_EQ(leader_.group().status(), MCAST_INPROGRESS);
  confirm_regions(member_);
  deliver();
  EXPECT_EQ(leader_.group().status(), MCAST_OK);
  EXPECT_EQ(member_.group().status(), MCAST_OK);
}

// Any CONFIRM may come meanwhile.
TEST_F(TwoMembers, ConfirmConnectOnlyOnceTheirQueuePairsAreUp) {
  member_.is_slow = true;
  lead();
  give(leader_, member_);
  give(member_, leader_);
  give(leader_, member_);
  EXPECT_THAT(member_.steps, ElementsAre("connect " + kGroup.to_string()));
  member_.handle(&GroupEngine::on_message, now_, mrp::test::kSwitch,
                 mrp::test::of_group(wire::MrpType::kConfirm));
  EXPECT_THAT(types(member_.out), IsEmpty());
  member_.handle(&GroupEngine::connected, now_, Expected<void>());
  EXPECT_THAT(types(member_.out), ElementsAre("confirm"));
}

TEST_F(TwoMembers, RefuseAnotherLeader) {
  become_active();
  for (Member* each : {&leader_, &member_}) {
    wire::MrpMessage other =
        mrp::test::of_group(wire::MrpType::kRegister, {each->group().member()});
    ++other.header.instance;
    each->handle(&GroupEngine::on_message, now_, mrp::test::host(9), other);
    EXPECT_THAT(types(each->out), ElementsAre("reject"));
  }
}

TEST_F(TwoMembers, WaitForAMemberThatHasNobodyToHandDataTo) {
  Member member(1, false, 0, false);
  lead();
  give(leader_, member);
  EXPECT_EQ(member.group().state(), MCAST_GROUP_WAITING);
  EXPECT_THAT(types(member.out), IsEmpty());
  member.engine.set_can_receive();
  now_ = leader_.engine.role().deadline();
  leader_.handle(&GroupEngine::on_timer, now_);
  give(leader_, member);
  EXPECT_THAT(types(member.out), ElementsAre("confirm"));
}

TEST_F(TwoMembers, FailTogetherIfOneCannotConnect) {
  member_.connects = fail(MCAST_ERR_NO_DEVICE, "no route to host");
  lead();
  deliver();
  EXPECT_EQ(member_.group().status(), MCAST_ERR_NO_DEVICE);
  EXPECT_EQ(leader_.group().status(), MCAST_ERR_REJECTED);
  EXPECT_EQ(leader_.group().cause(), MCAST_CAUSE_REGISTRATION);
  EXPECT_THAT(leader_.steps, ElementsAre("connect " + kGroup.to_string(), "stop"));
}

TEST_F(TwoMembers, FailTogetherIfTheLeaderCannotConnect) {
  leader_.connects = fail(MCAST_ERR_NO_DEVICE, "no route to host");
  lead();
  deliver();
  EXPECT_THAT(leader_.group().reason(), HasSubstr("no route"));
  EXPECT_EQ(member_.group().state(), MCAST_GROUP_FAILED);
}

// Before REGISTER it knows no leader to notify. It confirms REGISTER, and refuses CONNECT.
TEST_F(TwoMembers, FailTogetherIfOneWasStoppedBeforeTheOtherLed) {
  member_.fail(now_, MCAST_CAUSE_STOPPED, "it was stopped");
  lead();
  deliver();
  EXPECT_THAT(member_.steps, ElementsAre("stop")) << "it does not connect";
  EXPECT_EQ(leader_.group().status(), MCAST_ERR_REJECTED);
}

TEST_F(TwoMembers, LearnThatPacketsAreTooLongForAPort) {
  become_active();
  leader_.handle(&GroupEngine::on_message, now_, mrp::test::kSwitch,
                 mrp::test::reject(wire::MrpReject::kTooLong, {names_[1]}));
  deliver();
  for (const Member* each : {&leader_, &member_}) {
    EXPECT_EQ(each->group().status(), MCAST_ERR_FABRIC);
    EXPECT_THAT(each->group().reason(), HasSubstr("fit through"));
  }
}

// A receiver sends nothing, so nothing of its own fails when the leader is gone.
TEST_F(TwoMembers, AreGivenUpByOneThatWaitsForALeaderThatIsGone) {
  become_active();
  member_.engine.work().on_receive_posted();
  unsigned questions = 0;
  const wire::Instant limit = now_ + 20s;
  for (; now_ < limit && member_.group().status() == MCAST_OK; now_ += 50ms) {
    member_.handle(&GroupEngine::look, now_);
    questions += static_cast<unsigned>(member_.out.messages.size());
    member_.out.clear();  // lost
  }
  EXPECT_EQ(member_.group().status(), MCAST_ERR_FABRIC);
  EXPECT_EQ(member_.group().cause(), MCAST_CAUSE_WATCHDOG);
  EXPECT_THAT(member_.group().reason(), HasSubstr("the leader 10.0.0.1 has not answered"));
  EXPECT_GE(questions, 5u);
}

TEST_F(TwoMembers, StandWhileTheLeaderAnswers) {
  become_active();
  member_.engine.work().on_receive_posted();
  for (const wire::Instant limit = now_ + 60s; now_ < limit; now_ += 50ms) {
    member_.handle(&GroupEngine::look, now_);
    deliver();
  }
  EXPECT_EQ(member_.group().status(), MCAST_OK);
}

TEST_F(TwoMembers, AreNotRequestedFromOneThatPostsNoReceives) {
  become_active();
  for (const wire::Instant limit = now_ + 20s; now_ < limit; now_ += 50ms) {
    member_.handle(&GroupEngine::look, now_);
  }
  EXPECT_THAT(types(member_.out), IsEmpty());
  EXPECT_EQ(member_.group().status(), MCAST_OK);
}

TEST_F(TwoMembers, FailIfNoSendCompletesForTheSendersTimeLimit) {
  become_active();
  for (const wire::Instant limit = now_ + 20s; now_ < limit; now_ += 50ms) {
    leader_.handle(&GroupEngine::look, now_);
  }
  EXPECT_EQ(leader_.group().status(), MCAST_OK) << "it sends nothing";
  leader_.engine.work().on_send_posted(1);
  leader_.engine.set_watched(false);
  for (const wire::Instant limit = now_ + 20s; now_ < limit; now_ += 50ms) {
    leader_.handle(&GroupEngine::look, now_);
  }
  EXPECT_EQ(leader_.group().status(), MCAST_OK) << "it is not watched";
  leader_.handle(&GroupEngine::look, now_);
  leader_.engine.set_watched(true);
  const wire::Instant began = now_;
  while (leader_.group().status() == MCAST_OK && now_ < began + 20s) {
    now_ += 50ms;
    leader_.handle(&GroupEngine::look, now_);
  }
  EXPECT_EQ(now_ - began, 8s);
  EXPECT_EQ(leader_.group().cause(), MCAST_CAUSE_WATCHDOG);
  EXPECT_THAT(leader_.group().reason(), HasSubstr("no send completed for 8000 ms"));
  EXPECT_EQ(leader_.steps.back(), "stop");
  leader_.engine.work().drop();
  EXPECT_EQ(leader_.group().work().flow().sends_outstanding, 0u);
  EXPECT_EQ(leader_.group().work().flow().receives_posted, 0u);
}

TEST_F(TwoMembers, StandWhileALateMemberAnswersTheSwitch) {
  become_active();
  leader_.engine.work().on_send_posted(1);
  const auto look_for = [&](wire::Duration time, bool answers) {
    std::uint32_t answered = 0;
    for (const wire::Instant limit = now_ + time; now_ < limit; now_ += 50ms) {
      leader_.handle(&GroupEngine::look, now_);
      answered += answers ? 1 : 0;
      const mrp::MrpMember late{mrp::test::host(1), wire::Qpn(answered), wire::kMemberLate};
      leader_.handle(&GroupEngine::on_message, now_, mrp::test::kSwitch,
                     mrp::test::of_group(wire::MrpType::kReport, {late}));
    }
  };
  look_for(20s, true);
  EXPECT_EQ(leader_.group().status(), MCAST_OK);
  look_for(20s, false);
  EXPECT_EQ(leader_.group().cause(), MCAST_CAUSE_WATCHDOG);
}

TEST_F(TwoMembers, AreQueriedByTheirLeaderWhileItsSendsDoNotMove) {
  become_active();
  leader_.engine.work().on_send_posted(1);
  leader_.handle(&GroupEngine::look_for_lagging_members, now_);
  EXPECT_THAT(types(leader_.out), IsEmpty());
  leader_.handle(&GroupEngine::look_for_lagging_members, now_ + 500ms);
  EXPECT_THAT(types(leader_.out), ElementsAre("query"));
}

TEST_F(TwoMembers, ComplainOfLaggingMembersOnlyWhileSendsDoNotMove) {
  become_active();
  member_.engine.work().on_send_posted(1);
  member_.handle(&GroupEngine::look_for_lagging_members, now_);
  member_.handle(&GroupEngine::look_for_lagging_members, now_ + 400ms);
  EXPECT_THAT(types(member_.out), IsEmpty());
  member_.engine.work().on_send_posted(1);
  member_.handle(&GroupEngine::look_for_lagging_members, now_ + 600ms);
  EXPECT_THAT(types(member_.out), IsEmpty()) << "it has sent more";
  member_.handle(&GroupEngine::look_for_lagging_members, now_ + 1100ms);
  EXPECT_THAT(types(member_.out), ElementsAre("complain"));
}

TEST_F(TwoMembers, FailOnceAndNotifyTheOthersOnce) {
  become_active();
  member_.fail(now_, MCAST_CAUSE_STOPPED, "first");
  member_.fail(now_, MCAST_CAUSE_DEVICE, "second");
  EXPECT_EQ(member_.group().reason(), "first");
  EXPECT_THAT(types(member_.out), ElementsAre("reject"));
  deliver();
  EXPECT_EQ(leader_.group().status(), MCAST_ERR_FABRIC);
  EXPECT_EQ(leader_.group().cause(), MCAST_CAUSE_LEADER);
}

TEST_F(TwoMembers, RepeatThatTheyFailedWhenThatIsDue) {
  become_active();
  member_.fail(now_, MCAST_CAUSE_STOPPED, "it was stopped");
  member_.handle(&GroupEngine::leave, now_);
  EXPECT_THAT(types(member_.out), ElementsAre("reject"));
  member_.out.clear();
  const wire::Instant due = member_.engine.role().deadline();
  member_.handle(&GroupEngine::on_timer, due - 1ns);
  EXPECT_THAT(types(member_.out), IsEmpty());
  member_.handle(&GroupEngine::on_timer, due);
  EXPECT_THAT(types(member_.out), ElementsAre("reject"));
}

TEST_F(TwoMembers, EndWhenTheirLeaderLeaves) {
  become_active();
  member_.handle(&GroupEngine::leave, now_);
  EXPECT_THAT(types(member_.out), IsEmpty()) << "only its leader ends a group";
  leader_.handle(&GroupEngine::leave, now_);
  EXPECT_FALSE(leader_.engine.role().has_left());
  deliver();
  EXPECT_TRUE(leader_.engine.role().has_left());
  EXPECT_EQ(member_.group().status(), MCAST_ERR_CANCELED);
}

}  // namespace
}  // namespace cepheus::mcast
