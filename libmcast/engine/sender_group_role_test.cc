// Members of a sender group without queue pairs, on virtual time: the test is the network between
// them.
#include "libmcast/engine/sender_group_role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libmcast/engine/test_member.h"

namespace cepheus::mcast {
namespace {

using namespace std::chrono_literals;
using mrp::test::kStart;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SenderGroup, LetsItsReceiversNeitherSendNorRevoke) {
  const Member receiver(1, true);
  EXPECT_TRUE(receiver.group().settings().is_sender_group);
  EXPECT_FALSE(receiver.engine.role().check_may_send());
  EXPECT_FALSE(receiver.engine.role().check_may_revoke());
  EXPECT_TRUE(receiver.engine.role().check_may_publish()) << "before it is named";
  EXPECT_TRUE(receiver.engine.role().check_may_name_regions());
}

TEST(SenderGroup, HasALeaderThatSendsAndHasNoAddress) {
  Member sender(0, true);
  mrp::SenderConfig config;
  config.host = sender.group().member().host;
  config.virtual_qpn = wire::Qpn(wire::kFirstSenderGroupQpn);
  const auto led =
      sender.engine.lead_as_sender(kStart, config, mrp::test::members(3), {}, sender.out);
  ASSERT_TRUE(led) << led.error().text;
  EXPECT_EQ(sender.out.of_sender_groups.size(), 1u);
  EXPECT_TRUE(sender.engine.role().is_leader());
  EXPECT_TRUE(sender.engine.role().check_may_send());
  EXPECT_FALSE(sender.engine.role().check_may_publish()) << "receivers are told with INSTALL";
  EXPECT_TRUE(sender.engine.role().mcst_id().is_unset());
  EXPECT_EQ(sender.engine.role().address(), config.host);
  EXPECT_THAT(sender.steps, IsEmpty()) << "the virtual QPN may be another process's";
}

// A sender and its one receiver: the test passes on INSTALL and REMOVE as switches do.
class SenderAndReceiver : public testing::Test {
 protected:
  Expected<void> lead(Member& sender) const {
    mrp::SenderConfig config;
    config.host = sender.group().member().host;
    config.instance = mrp::test::kInstance;
    config.virtual_qpn = wire::Qpn(wire::kFirstSenderGroupQpn);
    return sender.engine.lead_as_sender(now_, config, mrp::test::members(2), {}, sender.out);
  }
  void lead() {
    const auto led = lead(sender_);
    ASSERT_TRUE(led) << led.error().text;
  }
  void deliver() { mcast::deliver(sender_, receiver_, now_); }
  void give(Member& from, Member& to) const { mcast::give(from, to, now_); }
  void become_active() {
    lead();
    deliver();
    ASSERT_EQ(sender_.group().status(), MCAST_OK) << sender_.group().reason();
    ASSERT_EQ(receiver_.group().status(), MCAST_OK) << receiver_.group().reason();
  }

  wire::Instant now_ = kStart;
  Member sender_{0, true, 4096}, receiver_{1, true, 2048};
};

TEST_F(SenderAndReceiver, ConnectBeforeTheSenderDoes) {
  become_active();
  EXPECT_THAT(receiver_.steps, ElementsAre("connect 10.0.0.1"));
  EXPECT_THAT(sender_.steps, ElementsAre("connect 10.0.0.2"));
  EXPECT_EQ(sender_.group().work().path_mtu(), 2048u);
  EXPECT_EQ(receiver_.group().work().path_mtu(), 2048u);
  EXPECT_EQ(receiver_.engine.role().address(), mrp::test::host(0));
  EXPECT_EQ(receiver_.engine.role().member_count(), 0u);
  EXPECT_EQ(sender_.engine.role().peer(), mrp::test::host(1));
  EXPECT_EQ(sender_.engine.role().member_count(), 2u);
  EXPECT_TRUE(sender_.engine.take_registration().of_sender_group);
  EXPECT_EQ(sender_.engine.role().member_count(), 0u);
  EXPECT_EQ(sender_.engine.role().epoch(), 0);
  EXPECT_TRUE(sender_.engine.role().peer().is_unset());
}

TEST_F(SenderAndReceiver, FailTogetherIfTheReceiverCannotConnect) {
  receiver_.connects = fail(MCAST_ERR_NO_DEVICE, "no route to host");
  lead();
  deliver();
  EXPECT_EQ(receiver_.group().status(), MCAST_ERR_NO_DEVICE);
  EXPECT_EQ(sender_.group().status(), MCAST_ERR_REJECTED);
  EXPECT_EQ(sender_.group().cause(), MCAST_CAUSE_REGISTRATION);
}

TEST_F(SenderAndReceiver, SendInstallAgainWhenThatIsDue) {
  lead();
  sender_.out.clear();  // lost
  const wire::Instant due = sender_.engine.role().deadline();
  sender_.handle(&GroupEngine::on_timer, due - 1ns);
  EXPECT_THAT(sender_.out.of_sender_groups, IsEmpty());
  sender_.handle(&GroupEngine::on_timer, due);
  EXPECT_EQ(sender_.out.of_sender_groups.size(), 1u);
}

// Before the receiver's queue pair is connected.
TEST_F(SenderAndReceiver, EndIfTheSenderDiesWhileItMeasures) {
  lead();
  give(sender_, receiver_);
  EXPECT_EQ(receiver_.group().state(), MCAST_GROUP_REGISTERING);
  EXPECT_THAT(receiver_.steps, IsEmpty()) << "the path MTU is unknown";
  EXPECT_FALSE(lead(receiver_)) << "it has a sender";
  for (const wire::Instant limit = now_ + 6s; now_ < limit; now_ += 50ms) {
    receiver_.handle(&GroupEngine::look, now_);
  }
  EXPECT_EQ(receiver_.group().status(), MCAST_ERR_FABRIC);
  EXPECT_EQ(receiver_.group().cause(), MCAST_CAUSE_WATCHDOG);
}

TEST_F(SenderAndReceiver, EndIfTheReceiverFailsWhileTheSenderMeasures) {
  lead();
  give(sender_, receiver_);
  receiver_.out.of_sender_groups.clear();  // lost
  receiver_.fail(now_, MCAST_CAUSE_STOPPED, "it was stopped");
  deliver();
  EXPECT_EQ(sender_.group().status(), MCAST_ERR_REJECTED);
}

TEST_F(SenderAndReceiver, EndWhenTheSenderLeaves) {
  become_active();
  sender_.handle(&GroupEngine::leave, now_);
  EXPECT_FALSE(sender_.engine.role().has_left());
  deliver();
  EXPECT_TRUE(sender_.engine.role().has_left());
  EXPECT_EQ(receiver_.group().status(), MCAST_ERR_CANCELED);
}

TEST_F(SenderAndReceiver, EndWhenTheReceiverFails) {
  become_active();
  receiver_.fail(now_, MCAST_CAUSE_STOPPED, "it was stopped");
  deliver();
  EXPECT_EQ(sender_.group().status(), MCAST_ERR_FABRIC);
  EXPECT_EQ(sender_.group().cause(), MCAST_CAUSE_LEADER);
}

TEST_F(SenderAndReceiver, StandWhileInstallsComeAndAreGivenUpInTheirSilence) {
  become_active();
  for (const wire::Instant limit = now_ + 20s; now_ < limit; now_ += 50ms) {
    sender_.handle(&GroupEngine::on_timer, now_);
    deliver();
    receiver_.handle(&GroupEngine::look, now_);
  }
  EXPECT_EQ(receiver_.group().status(), MCAST_OK);
  for (const wire::Instant limit = now_ + 6s; now_ < limit; now_ += 50ms) {
    receiver_.handle(&GroupEngine::look, now_);
  }
  EXPECT_EQ(receiver_.group().status(), MCAST_ERR_FABRIC);
  EXPECT_EQ(receiver_.group().cause(), MCAST_CAUSE_WATCHDOG);
  EXPECT_THAT(receiver_.group().reason(),
              HasSubstr("the sender 10.0.0.1 has been silent for 5000 ms"));
}

}  // namespace
}  // namespace cepheus::mcast
