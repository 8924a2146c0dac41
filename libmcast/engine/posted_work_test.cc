// One member whose switches leave the PSNs to the hosts, on virtual time.
#include "libmcast/engine/posted_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libmcast/engine/test_member.h"

namespace cepheus::mcast {
namespace {

using mrp::test::kStart;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Switches leave the PSNs to the hosts, or not.
void activate(Member& member, bool host_sync) {
  for (const auto type :
       {wire::MrpType::kRegister, wire::MrpType::kConnect, wire::MrpType::kActivate}) {
    wire::MrpMessage m = mrp::test::of_group(type, {member.group().member()});
    if (type == wire::MrpType::kRegister && host_sync) m.header.flags = wire::MrpHeader::kHostSync;
    if (type == wire::MrpType::kConnect) m.path.emplace();
    member.handle(&GroupEngine::on_message, kStart, mrp::test::host(0), m);
  }
  ASSERT_EQ(member.group().status(), MCAST_OK);
  member.steps.erase(member.steps.begin());  // connect
}

TEST(SourceChange, HaltsTheQueuePairBeforeItMovesAPsn) {
  Member member(1);
  activate(member, true);
  EXPECT_TRUE(member.check_send(1)) << "nothing has been received";
  member.engine.work().on_receive_posted();
  member.psns.receive = member.psns.receive + 1;
  member.end_receive();
  const auto again = member.check_send(1);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().status, MCAST_ERR_AGAIN);
  member.handle(&GroupEngine::synchronise);
  EXPECT_TRUE(member.sync().is_halted());
  member.handle(&GroupEngine::synchronise);  // not before all that was posted has come back
  member.sync().drained();
  member.handle(&GroupEngine::synchronise);
  EXPECT_THAT(member.steps, ElementsAre("host-sync", "halt", "send at the receive PSN"));
  EXPECT_TRUE(member.check_send(1));
  EXPECT_FALSE(member.sync().is_halted());
}

TEST(SourceChange, IsDueOnceAllThatTheSourceSentIsAcknowledged) {
  Member source(1);
  activate(source, true);
  source.engine.work().on_send_posted(3);
  source.handle(&GroupEngine::synchronise);
  EXPECT_THAT(source.steps, ElementsAre("host-sync"));
  source.psns.send = source.psns.send + 3;
  source.end_send(3);
  EXPECT_TRUE(source.group().work().is_sync_due());
  source.handle(&GroupEngine::synchronise);
  source.sync().drained();
  source.handle(&GroupEngine::synchronise);
  EXPECT_THAT(source.steps, ElementsAre("host-sync", "halt", "receive at the send PSN"));
}

TEST(SourceChange, PostsReceivesAgainInTheirOrder) {
  Member source(1);
  activate(source, true);
  for (int i = 0; i < 2; ++i) source.engine.work().on_receive_posted();
  EXPECT_FALSE(source.sync().keeps(1)) << "the queue pair has it";
  source.engine.work().on_send_posted(3);
  source.psns.send = source.psns.send + 3;
  source.end_send(3);
  source.handle(&GroupEngine::synchronise);
  EXPECT_TRUE(source.sync().keeps(3)) << "it was posted before the flushed ones came back";
  EXPECT_TRUE(source.sync().keeps_flushed(1));
  EXPECT_TRUE(source.sync().keeps_flushed(2));
  source.sync().drained();
  EXPECT_TRUE(source.sync().keeps(4));
  source.handle(&GroupEngine::synchronise);
  EXPECT_THAT(source.steps, ElementsAre("host-sync", "halt", "receive at the send PSN", "post 1",
                                        "post 2", "post 3", "post 4"));
  EXPECT_FALSE(source.sync().has_kept());
  EXPECT_EQ(source.group().work().flow().receives_posted, 2u);
}

// The device takes its time for a step, on another thread.
TEST(SourceChange, PostsReceivesOfASlowStepBehindTheOthers) {
  Member source(1);
  activate(source, true);
  source.is_slow = true;
  source.engine.work().on_send_posted(3);
  source.psns.send = source.psns.send + 3;
  source.end_send(3);
  source.handle(&GroupEngine::synchronise);
  EXPECT_TRUE(source.sync().keeps_flushed(1));
  source.sync().drained();
  EXPECT_FALSE(source.group().work().is_sync_due()) << "the halt has not ended";
  source.handle(&GroupEngine::stepped, kStart, Expected<void>());
  EXPECT_TRUE(source.group().work().is_sync_due());
  source.handle(&GroupEngine::synchronise);
  EXPECT_TRUE(source.sync().keeps(2));
  EXPECT_EQ(source.check_send(1).error().status, MCAST_ERR_AGAIN);
  source.handle(&GroupEngine::stepped, kStart, Expected<void>());
  EXPECT_THAT(source.steps,
              ElementsAre("host-sync", "halt", "receive at the send PSN", "post 1", "post 2"));
  EXPECT_FALSE(source.sync().is_halted());
  EXPECT_TRUE(source.check_send(1));
}

TEST(SourceChange, IsRefusedWherePsnsStandStillOverAMessage) {
  Member source(1);
  activate(source, true);
  source.engine.work().on_send_posted(3);
  source.end_send(3);
  EXPECT_EQ(source.group().status(), MCAST_ERR_NO_DEVICE);
  EXPECT_THAT(source.group().reason(), HasSubstr("PSNs stand still"));
}

TEST(SourceChange, LeavesAFailedGroupTheReceivesThatItKept) {
  Member source(1);
  activate(source, true);
  source.engine.work().on_send_posted(3);
  source.psns.send = source.psns.send + 3;
  source.end_send(3);
  source.handle(&GroupEngine::synchronise);
  EXPECT_TRUE(source.sync().keeps(8));
  EXPECT_TRUE(source.sync().keeps_flushed(7));
  source.fail(kStart, MCAST_CAUSE_DEVICE, "the device is gone");
  EXPECT_FALSE(source.sync().keeps(9));
  EXPECT_THAT(source.sync().take_kept(), ElementsAre(7u, 8u));
  EXPECT_FALSE(source.sync().has_kept());
}

TEST(SourceChange, FailsTheGroupIfThePsnsCannotBeRead) {
  Member member(1);
  activate(member, true);
  member.has_device = false;
  EXPECT_FALSE(member.check_send(1));
  EXPECT_EQ(member.group().status(), MCAST_ERR_NO_DEVICE);
  EXPECT_EQ(member.group().cause(), MCAST_CAUSE_WORK);
  EXPECT_EQ(member.group().reason(), "the device is gone");
}

TEST(SourceChange, IsTheSwitchesMatterInOtherGroups) {
  Member member(1);
  activate(member, false);
  member.engine.work().on_receive_posted();
  member.end_receive();
  EXPECT_TRUE(member.check_send(1));
  EXPECT_FALSE(member.group().work().is_sync_due());
}

}  // namespace
}  // namespace cepheus::mcast
