// Members of a group without queue pairs, on virtual time: the test is their port, and the network
// between them.
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
    c.host = leader_.engine.member().host;
    return c;
  }
  void lead() {
    const auto led = leader_.engine.lead(now_, config(), {kGroup, kEpoch}, names_, leaders_);
    ASSERT_TRUE(led) << led.error().text;
  }
  // Delivers all messages and their answers.
  void deliver() {
    while (!leaders_.messages.empty() || !members_.messages.empty()) {
      give(leaders_, leader_, member_, members_);
      give(members_, member_, leader_, leaders_);
    }
  }
  void give(mrp::Outbox& from, const Member& sender, Member& to, mrp::Outbox& answers) const {
    const auto messages = std::exchange(from.messages, {});
    for (const wire::MrpMessage& m : messages) {
      to.engine.role().on_message(now_, sender.engine.member().host, m, answers);
    }
  }
  void become_active() {
    lead();
    deliver();
    ASSERT_EQ(leader_.engine.status(), MCAST_OK);
    ASSERT_EQ(member_.engine.status(), MCAST_OK);
  }
  static std::vector<std::string> types(const mrp::Outbox& out) {
    std::vector<std::string> all;
    for (const wire::MrpMessage& m : out.messages) all.emplace_back(to_string(m.header.type));
    return all;
  }

  wire::Instant now_ = kStart;
  const std::vector<mrp::MrpMember> names_ = mrp::test::members(2);
  Member leader_{0}, member_{1};
  mrp::Outbox leaders_, members_;  // their messages
};

TEST_F(TwoMembers, ConnectBeforeEitherIsActive) {
  become_active();
  EXPECT_TRUE(leader_.engine.role().is_leader());
  EXPECT_FALSE(member_.engine.role().is_leader());
  for (const Member* each : {&leader_, &member_}) {
    EXPECT_THAT(each->port.steps, ElementsAre("connect " + kGroup.to_string()));
    EXPECT_EQ(each->engine.role().mcst_id(), kGroup);
    EXPECT_EQ(each->port.regions_begun, 1);
    EXPECT_EQ(each->engine.flow().messages_sent + each->engine.flow().messages_received, 0u);
    EXPECT_EQ(each->engine.flow().sends_outstanding + each->engine.flow().receives_posted, 0u);
    EXPECT_EQ(each->engine.flow().sends_completed, 0u);
  }
}

// Otherwise their portions would differ.
TEST_F(TwoMembers, BeginWithOneWindowThoughAnotherComesBeforeTheLastConfirm) {
  lead();
  give(leaders_, leader_, member_, members_);
  ASSERT_THAT(types(members_), ElementsAre("confirm"));
  members_.messages[0].path = wire::MrpPath{0, 20};
  give(members_, member_, leader_, leaders_);
  ASSERT_THAT(types(leaders_), ElementsAre("connect"));
  give(leaders_, leader_, member_, members_);
  give(members_, member_, leader_, leaders_);
  ASSERT_THAT(types(leaders_), ElementsAre("activate"));
  wire::MrpMessage report = mrp::test::of_group(wire::MrpType::kReport);
  report.path = wire::MrpPath{0, 8};
  leader_.engine.role().on_message(now_, mrp::test::kSwitch, report, leaders_);
  deliver();
  ASSERT_EQ(leader_.engine.status(), MCAST_OK);
  for (const Member* each : {&leader_, &member_}) {
    EXPECT_EQ(each->engine.window().portion(), 10u);
    EXPECT_EQ(each->engine.window().limit(), 8u);
  }
}

// RTR waits for the neighbour of the group's address.
TEST_F(TwoMembers, SendNothingBeforeTheirQueuePairsAreConnected) {
  leader_.port.is_slow = member_.port.is_slow = true;
  lead();
  EXPECT_THAT(types(leaders_), ElementsAre("register"));
  const auto again = leader_.engine.lead(now_, config(), {kGroup, kEpoch}, names_, leaders_);
  EXPECT_FALSE(again) << "it leads already";
  deliver();
  EXPECT_EQ(member_.engine.state(), MCAST_GROUP_REGISTERING);
  member_.engine.connected(now_, {}, members_);
  deliver();
  EXPECT_EQ(member_.engine.state(), MCAST_GROUP_REGISTERING) << "the leader is not connected";
  leader_.engine.connected(now_, {}, leaders_);
  deliver();
  EXPECT_EQ(leader_.engine.status(), MCAST_OK);
  EXPECT_EQ(member_.engine.status(), MCAST_OK);
}

TEST_F(TwoMembers, AreCountedByTheirLeader) {
  become_active();
  EXPECT_EQ(leader_.engine.role().member_count(), 2u);
  EXPECT_EQ(member_.engine.role().member_count(), 0u) << "only the leader knows";
  EXPECT_TRUE(leader_.engine.role().take_registration());
  EXPECT_EQ(leader_.engine.role().member_count(), 0u) << "its registration was taken";
  EXPECT_EQ(leader_.engine.role().mcst_id(), kGroup);
}

TEST_F(TwoMembers, WaitUntilTheLeadersRegionsAreInForce) {
  leader_.port.knows_regions = false;
  lead();
  deliver();
  EXPECT_EQ(leader_.engine.status(), MCAST_INPROGRESS);
  leader_.port.knows_regions = leader_.port.confirms_regions = true;
  leader_.engine.role().on_message(now_, mrp::test::kSwitch,
                                   mrp::test::of_group(wire::MrpType::kConfirm), leaders_);
  deliver();
  EXPECT_EQ(leader_.engine.status(), MCAST_OK);
}

TEST_F(TwoMembers, WaitUntilAMembersRegionsAreInForce) {
  member_.port.knows_regions = false;
  lead();
  deliver();
  EXPECT_EQ(member_.engine.state(), MCAST_GROUP_REGISTERING);
  EXPECT_EQ(leader_.engine.status(), MCAST_INPROGRESS);
  member_.port.knows_regions = member_.port.confirms_regions = true;
  member_.engine.role().on_message(now_, mrp::test::kSwitch,
                                   mrp::test::of_group(wire::MrpType::kConfirm), members_);
  deliver();
  EXPECT_EQ(leader_.engine.status(), MCAST_OK);
  EXPECT_EQ(member_.engine.status(), MCAST_OK);
}

// Any CONFIRM may come meanwhile.
TEST_F(TwoMembers, AreNotConnectedBeforeTheirQueuePairsAre) {
  member_.port.is_slow = member_.port.confirms_regions = true;
  lead();
  give(leaders_, leader_, member_, members_);
  give(members_, member_, leader_, leaders_);
  give(leaders_, leader_, member_, members_);
  EXPECT_THAT(member_.port.steps, ElementsAre("connect " + kGroup.to_string()));
  member_.engine.role().on_message(now_, mrp::test::kSwitch,
                                   mrp::test::of_group(wire::MrpType::kConfirm), members_);
  EXPECT_THAT(types(members_), IsEmpty());
  member_.engine.connected(now_, {}, members_);
  EXPECT_THAT(types(members_), ElementsAre("confirm"));
}

TEST_F(TwoMembers, RefuseAnotherLeader) {
  become_active();
  for (Member* each : {&leader_, &member_}) {
    wire::MrpMessage other = mrp::test::of_group(wire::MrpType::kRegister, {each->engine.member()});
    ++other.header.instance;
    mrp::Outbox out;
    each->engine.role().on_message(now_, mrp::test::host(9), other, out);
    EXPECT_THAT(types(out), ElementsAre("reject"));
  }
}

TEST_F(TwoMembers, WaitForAMemberThatHasNobodyToHandDataTo) {
  member_.port.has_receiver = false;
  lead();
  deliver();
  EXPECT_EQ(member_.engine.state(), MCAST_GROUP_WAITING);
  EXPECT_EQ(leader_.engine.status(), MCAST_INPROGRESS);
  member_.port.has_receiver = true;
  now_ = leader_.engine.role().deadline();
  leader_.engine.role().on_timer(now_, leaders_);
  deliver();
  EXPECT_EQ(leader_.engine.status(), MCAST_OK);
}

TEST_F(TwoMembers, FailTogetherIfOneCannotConnect) {
  member_.port.connects = false;
  lead();
  deliver();
  EXPECT_EQ(member_.engine.status(), MCAST_ERR_NO_DEVICE);
  EXPECT_EQ(leader_.engine.status(), MCAST_ERR_REJECTED);
  EXPECT_EQ(leader_.engine.cause(), MCAST_CAUSE_REGISTRATION);
  EXPECT_THAT(leader_.port.steps, ElementsAre("connect " + kGroup.to_string(), "failed"));
}

TEST_F(TwoMembers, FailTogetherIfTheLeaderCannotConnect) {
  leader_.port.connects = false;
  lead();
  deliver();
  EXPECT_THAT(leader_.engine.reason(), HasSubstr("no route"));
  EXPECT_EQ(member_.engine.state(), MCAST_GROUP_FAILED);
}

TEST_F(TwoMembers, AreNotConnectedIfTheLeaderWasStoppedBefore) {
  lead();
  give(leaders_, leader_, member_, members_);
  leader_.engine.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_STOPPED, "it was stopped");
  give(members_, member_, leader_, leaders_);
  EXPECT_THAT(leader_.port.steps, ElementsAre("failed"));
}

TEST_F(TwoMembers, LearnThatPacketsAreTooLongForAPort) {
  become_active();
  leader_.engine.role().on_message(now_, mrp::test::kSwitch,
                                   mrp::test::reject(wire::MrpReject::kTooLong, {names_[1]}),
                                   leaders_);
  deliver();
  for (const Member* each : {&leader_, &member_}) {
    EXPECT_EQ(each->engine.status(), MCAST_ERR_FABRIC);
    EXPECT_THAT(each->engine.reason(), HasSubstr("fit through"));
  }
}

// A receiver sends nothing, so nothing of its own fails when the leader is gone.
TEST_F(TwoMembers, AreGivenUpByOneThatWaitsForALeaderThatIsGone) {
  become_active();
  member_.engine.on_receive_posted();
  unsigned questions = 0;
  const wire::Instant limit = now_ + 20s;
  for (; now_ < limit && member_.engine.status() == MCAST_OK; now_ += 50ms) {
    member_.engine.look(now_, members_);
    questions += static_cast<unsigned>(members_.messages.size());
    members_.clear();  // lost
  }
  EXPECT_EQ(member_.engine.status(), MCAST_ERR_FABRIC);
  EXPECT_EQ(member_.engine.cause(), MCAST_CAUSE_WATCHDOG);
  EXPECT_THAT(member_.engine.reason(), HasSubstr("the leader 10.0.0.1 has not answered"));
  EXPECT_GE(questions, 5u);
}

TEST_F(TwoMembers, StandWhileTheLeaderAnswers) {
  become_active();
  member_.engine.on_receive_posted();
  for (const wire::Instant limit = now_ + 60s; now_ < limit; now_ += 50ms) {
    member_.engine.look(now_, members_);
    deliver();
  }
  EXPECT_EQ(member_.engine.status(), MCAST_OK);
}

TEST_F(TwoMembers, AreNotRequestedFromOneThatPostsNoReceives) {
  become_active();
  for (const wire::Instant limit = now_ + 20s; now_ < limit; now_ += 50ms) {
    member_.engine.look(now_, members_);
  }
  EXPECT_THAT(types(members_), IsEmpty());
  EXPECT_EQ(member_.engine.status(), MCAST_OK);
}

TEST_F(TwoMembers, FailIfNoSendCompletesForTheSendersTimeLimit) {
  become_active();
  for (const wire::Instant limit = now_ + 20s; now_ < limit; now_ += 50ms) {
    leader_.engine.look(now_, leaders_);
  }
  EXPECT_EQ(leader_.engine.status(), MCAST_OK) << "it sends nothing";
  leader_.engine.on_send_posted(1);
  leader_.engine.set_watched(false);
  for (const wire::Instant limit = now_ + 20s; now_ < limit; now_ += 50ms) {
    leader_.engine.look(now_, leaders_);
  }
  EXPECT_EQ(leader_.engine.status(), MCAST_OK) << "it is not watched";
  leader_.engine.look(now_, leaders_);
  leader_.engine.set_watched(true);
  const wire::Instant began = now_;
  while (leader_.engine.status() == MCAST_OK && now_ < began + 20s) {
    now_ += 50ms;
    leader_.engine.look(now_, leaders_);
  }
  EXPECT_EQ(now_ - began, 8s);
  EXPECT_EQ(leader_.engine.cause(), MCAST_CAUSE_WATCHDOG);
  EXPECT_THAT(leader_.engine.reason(), HasSubstr("no send completed for 8000 ms"));
  EXPECT_EQ(leader_.port.steps.back(), "failed");
  leader_.engine.drop_work();
  EXPECT_EQ(leader_.engine.flow().sends_outstanding, 0u);
  EXPECT_EQ(leader_.engine.flow().receives_posted, 0u);
}

TEST_F(TwoMembers, StandWhileALateMemberAnswersTheSwitch) {
  become_active();
  leader_.engine.on_send_posted(1);
  const auto look_for = [&](wire::Duration time, bool answers) {
    std::uint32_t answered = 0;
    for (const wire::Instant limit = now_ + time; now_ < limit; now_ += 50ms) {
      leader_.engine.look(now_, leaders_);
      answered += answers ? 1 : 0;
      const mrp::MrpMember late{mrp::test::host(1), wire::Qpn(answered), wire::kMemberLate};
      leader_.engine.role().on_message(
          now_, mrp::test::kSwitch, mrp::test::of_group(wire::MrpType::kReport, {late}), leaders_);
    }
  };
  look_for(20s, true);
  EXPECT_EQ(leader_.engine.status(), MCAST_OK);
  look_for(20s, false);
  EXPECT_EQ(leader_.engine.cause(), MCAST_CAUSE_WATCHDOG);
}

TEST_F(TwoMembers, AreQueriedByTheirLeaderWhileItsSendsDoNotMove) {
  become_active();
  leader_.engine.on_send_posted(1);
  leader_.engine.look_for_lagging_members(now_, leaders_);
  EXPECT_THAT(types(leaders_), IsEmpty());
  leader_.engine.look_for_lagging_members(now_ + 500ms, leaders_);
  EXPECT_THAT(types(leaders_), ElementsAre("query"));
}

TEST_F(TwoMembers, ComplainOfLaggingMembersOnlyWhileSendsDoNotMove) {
  become_active();
  member_.engine.on_send_posted(1);
  member_.engine.look_for_lagging_members(now_, members_);
  member_.engine.look_for_lagging_members(now_ + 400ms, members_);
  EXPECT_THAT(types(members_), IsEmpty());
  member_.engine.on_send_posted(1);
  member_.engine.look_for_lagging_members(now_ + 600ms, members_);
  EXPECT_THAT(types(members_), IsEmpty()) << "it has sent more";
  member_.engine.look_for_lagging_members(now_ + 1100ms, members_);
  EXPECT_THAT(types(members_), ElementsAre("complain"));
}

TEST_F(TwoMembers, FailOnceAndNotifyTheOthersOnce) {
  become_active();
  member_.engine.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_STOPPED, "first");
  member_.engine.fail(MCAST_ERR_CANCELED, MCAST_CAUSE_DEVICE, "second");
  EXPECT_EQ(member_.engine.reason(), "first");
  member_.engine.send_failure(now_, members_);
  EXPECT_THAT(types(members_), ElementsAre("reject"));
  deliver();
  member_.engine.send_failure(now_, members_);
  EXPECT_THAT(types(members_), IsEmpty());
  EXPECT_EQ(leader_.engine.status(), MCAST_ERR_FABRIC);
  EXPECT_EQ(leader_.engine.cause(), MCAST_CAUSE_LEADER);
}

TEST_F(TwoMembers, RepeatThatTheyFailedWhenThatIsDue) {
  become_active();
  member_.engine.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_STOPPED, "it was stopped");
  member_.engine.leave(now_, members_);
  EXPECT_THAT(types(members_), ElementsAre("reject"));
  members_.clear();
  const wire::Instant due = member_.engine.role().deadline();
  member_.engine.role().on_timer(due - 1ns, members_);
  EXPECT_THAT(types(members_), IsEmpty());
  member_.engine.role().on_timer(due, members_);
  EXPECT_THAT(types(members_), ElementsAre("reject"));
}

TEST_F(TwoMembers, EndWhenTheirLeaderLeaves) {
  become_active();
  member_.engine.leave(now_, members_);
  EXPECT_THAT(types(members_), IsEmpty()) << "only its leader ends a group";
  leader_.engine.leave(now_, leaders_);
  EXPECT_FALSE(leader_.engine.role().has_left());
  deliver();
  EXPECT_TRUE(leader_.engine.role().has_left());
  EXPECT_EQ(member_.engine.status(), MCAST_ERR_CANCELED);
}

// A group with PSNs that switches leave to the hosts.
TEST(SourceChange, HaltsTheQueuePairBeforeItMovesAPsn) {
  Member member(1);
  member.engine.activate(true);
  EXPECT_TRUE(member.engine.check_psns(1)) << "nothing has been received";
  member.engine.on_receive_posted();
  member.port.receive_psn = member.port.receive_psn + 1;
  member.engine.on_receive_ended(true);
  const auto again = member.engine.check_psns(1);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().status, MCAST_ERR_AGAIN);
  member.engine.synchronise();
  EXPECT_TRUE(member.engine.is_halted());
  member.engine.synchronise();  // not before all that was posted has come back
  member.engine.drained();
  member.engine.synchronise();
  EXPECT_THAT(member.port.steps,
              ElementsAre("host-sync", "sync due", "halt", "send at the receive PSN"));
  EXPECT_TRUE(member.engine.check_psns(1));
  EXPECT_FALSE(member.engine.is_halted());
}

TEST(SourceChange, IsDueOnceAllThatTheSourceSentIsAcknowledged) {
  Member source(0);
  source.engine.activate(true);
  source.engine.on_send_posted(3);
  source.engine.synchronise();
  EXPECT_THAT(source.port.steps, ElementsAre("host-sync"));
  source.port.send_psn = source.port.send_psn + 3;
  source.engine.on_send_ended(3, true);
  EXPECT_TRUE(source.engine.is_sync_due());
  source.engine.synchronise();
  source.engine.drained();
  source.engine.synchronise();
  EXPECT_THAT(source.port.steps, ElementsAre("host-sync", "halt", "receive at the send PSN"));
}

TEST(SourceChange, PostsReceivesAgainInTheirOrder) {
  Member source(0);
  source.engine.activate(true);
  for (int i = 0; i < 2; ++i) source.engine.on_receive_posted();
  EXPECT_FALSE(source.engine.keeps(1)) << "the queue pair has it";
  source.engine.on_send_posted(3);
  source.port.send_psn = source.port.send_psn + 3;
  source.engine.on_send_ended(3, true);
  source.engine.synchronise();
  EXPECT_TRUE(source.engine.keeps(3)) << "it was posted before the flushed ones came back";
  EXPECT_TRUE(source.engine.keeps_flushed(1));
  EXPECT_TRUE(source.engine.keeps_flushed(2));
  source.engine.drained();
  EXPECT_TRUE(source.engine.keeps(4));
  source.engine.synchronise();
  EXPECT_THAT(source.port.steps, ElementsAre("host-sync", "halt", "receive at the send PSN",
                                             "post 1", "post 2", "post 3", "post 4"));
  EXPECT_FALSE(source.engine.has_kept());
  EXPECT_EQ(source.engine.flow().receives_posted, 2u);
}

// The device takes its time for a step, on another thread.
TEST(SourceChange, PostsReceivesOfASlowStepBehindTheOthers) {
  Member source(0);
  source.engine.activate(true);
  source.port.is_slow = true;
  source.engine.on_send_posted(3);
  source.port.send_psn = source.port.send_psn + 3;
  source.engine.on_send_ended(3, true);
  source.engine.synchronise();
  EXPECT_TRUE(source.engine.keeps_flushed(1));
  source.engine.drained();
  EXPECT_FALSE(source.engine.is_sync_due()) << "the halt has not ended";
  source.engine.stepped({});
  EXPECT_TRUE(source.engine.is_sync_due());
  source.engine.synchronise();
  EXPECT_TRUE(source.engine.keeps(2));
  EXPECT_EQ(source.engine.check_psns(1).error().status, MCAST_ERR_AGAIN);
  source.engine.stepped({});
  EXPECT_THAT(source.port.steps,
              ElementsAre("host-sync", "halt", "sync due", "receive at the send PSN", "post 1",
                          "sync due", "post 2"));
  EXPECT_FALSE(source.engine.is_halted());
  EXPECT_TRUE(source.engine.check_psns(1));
}

TEST(SourceChange, IsRefusedWherePsnsStandStillOverAMessage) {
  Member source(0);
  source.engine.activate(true);
  source.engine.on_send_posted(3);
  source.engine.on_send_ended(3, true);
  EXPECT_EQ(source.engine.status(), MCAST_ERR_NO_DEVICE);
  EXPECT_THAT(source.engine.reason(), HasSubstr("PSNs stand still"));
}

TEST(SourceChange, LeavesAFailedGroupTheReceivesThatItKept) {
  Member source(0);
  source.engine.activate(true);
  source.engine.on_send_posted(3);
  source.port.send_psn = source.port.send_psn + 3;
  source.engine.on_send_ended(3, true);
  source.engine.synchronise();
  EXPECT_TRUE(source.engine.keeps(8));
  EXPECT_TRUE(source.engine.keeps_flushed(7));
  source.engine.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_DEVICE, "the device is gone");
  EXPECT_FALSE(source.engine.keeps(9));
  EXPECT_THAT(source.engine.take_kept(), ElementsAre(7u, 8u));
  EXPECT_FALSE(source.engine.has_kept());
}

TEST(SourceChange, FailsTheGroupIfThePsnsCannotBeRead) {
  Member member(1);
  member.engine.activate(true);
  member.port.has_device = false;
  EXPECT_FALSE(member.engine.check_psns(1));
  EXPECT_EQ(member.engine.status(), MCAST_ERR_NO_DEVICE);
  EXPECT_EQ(member.engine.cause(), MCAST_CAUSE_WORK);
  EXPECT_EQ(member.engine.reason(), "the device is gone");
}

TEST(SourceChange, IsTheSwitchesMatterInOtherGroups) {
  Member member(1);
  member.engine.activate(false);
  member.engine.on_receive_posted();
  member.engine.on_receive_ended(true);
  EXPECT_TRUE(member.engine.check_psns(1));
  EXPECT_FALSE(member.engine.is_sync_due());
}

}  // namespace
}  // namespace cepheus::mcast
