// Groups with PSNs that switches leave to the hosts (controller/psn_sync.h), over the fake device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mcast/recovery.h>

#include "libmcast/fake_group.h"

namespace cepheus::mcast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::MrpType;

class HostSyncGroup : public FakeGroup {
 protected:
  void start(mcast_lane_t lane) {
    make(lane);
    join(wire::MrpHeader::kHostSync);
    inject(MrpType::kActivate);
  }
};

// A member that has received stops its queue pair, moves its send PSN on through RESET and posts
// its receives again, before it sends.
TEST_F(HostSyncGroup, SynchronisesItsPsnsBeforeItSendsIfSwitchesDoNot) {
  start(MCAST_LANE_BULK);
  Op first, second, send;
  ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &first), MCAST_INPROGRESS);
  ASSERT_EQ(mcast_recv(group_, buffer_ + 8, 8, nullptr, &second), MCAST_INPROGRESS);
  deliver("12345678", 7);
  EXPECT_EQ(first.status, MCAST_OK);
  const std::uint32_t next = pair().receive_psn;
  pair().states.clear();
  EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_ERR_AGAIN);
  progress();
  EXPECT_THAT(pair().states,
              ElementsAre(IBV_QPS_ERR, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS));
  EXPECT_EQ(pair().send_psn, next);
  EXPECT_EQ(pair().receive_psn, next);
  ASSERT_EQ(pair().receives.size(), 1u);
  EXPECT_EQ(pair().receives.front().address, buffer_ + 8) << "the receive that was flushed";
  EXPECT_EQ(second.calls, 0) << "it goes on";
  EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_INPROGRESS);
  drop();  // before the operations
}

// A WRITE without immediate takes no receive, and a message of a source that died on the way may have
// begun to arrive: both move the receive PSN on, and nothing completes.
TEST_F(HostSyncGroup, SynchronisesItsPsnsThoughNothingItReceivedHasCompleted) {
  for (const mcast_lane_t lane : {MCAST_LANE_BULK, MCAST_LANE_EAGER}) {
    start(lane);
    Op op;
    const auto send = [&] {
      return lane == MCAST_LANE_EAGER ? mcast_send_eager(group_, kData, 8, 1)
                                      : mcast_send(group_, kData, 8, nullptr, 1, &op);
    };
    pair().receive_psn += 3;  // as the device counts
    const std::uint32_t next = pair().receive_psn;
    EXPECT_EQ(send(), MCAST_ERR_AGAIN);
    progress();
    EXPECT_EQ(pair().send_psn, next);
    EXPECT_EQ(pair().receive_psn, next);
    const mcast_status_t sent = lane == MCAST_LANE_EAGER ? MCAST_OK : MCAST_INPROGRESS;
    EXPECT_EQ(send(), sent);
    EXPECT_EQ(send(), sent) << "its own turn goes on";
    drop();  // before the operation
  }
}

// The switch may die while the queue pair is on its way up, or the device runs out of memory. Some
// receives were posted again by then and come back flushed a second time.
TEST_F(HostSyncGroup, ThatFailsOnItsWayUpEndsEachReceiveOnce) {
  for (const bool is_refused_rtr : {true, false}) {
    start(MCAST_LANE_BULK);
    Op first, second, third, send;
    for (Op* op : {&first, &second, &third}) {
      ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, op), MCAST_INPROGRESS);
    }
    deliver("12345678", 7);
    EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_ERR_AGAIN);
    if (is_refused_rtr) {
      device_.refuse_modify = ETIMEDOUT;
    } else {
      device_.receives_left = 2;  // the marker, and `second`
    }
    progress();
    device_.receives_left = -1;
    EXPECT_EQ(attr().cause, MCAST_CAUSE_WORK);
    EXPECT_THAT(attr().reason, HasSubstr(is_refused_rtr ? "no answer for" : "refused a receive"));
    for (const Op* op : {&second, &third}) {
      EXPECT_EQ(op->status, MCAST_ERR_FABRIC);
      EXPECT_EQ(op->calls, 1);
    }
    EXPECT_EQ(attr().recvs_posted, 0u);
    drop();
  }
}

// The device has not seen such a receive, so that it flushes none.
TEST_F(HostSyncGroup, ThatFailsWhileItsQueuePairIsStoppedEndsReceivesPostedMeanwhile) {
  start(MCAST_LANE_BULK);
  Op first, second, third, send;
  ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &first), MCAST_INPROGRESS);
  ASSERT_EQ(mcast_recv(group_, buffer_ + 8, 8, nullptr, &second), MCAST_INPROGRESS);
  deliver("12345678", 7);
  EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_ERR_AGAIN);
  mcast_progress(context_);
  from(context_)->wait_for_calls();
  ASSERT_EQ(pair().states.back(), IBV_QPS_ERR);
  ASSERT_EQ(mcast_recv(group_, buffer_ + 16, 8, nullptr, &third), MCAST_INPROGRESS);
  ASSERT_EQ(mcast_group_stop(group_, "the test"), MCAST_OK);
  progress();
  for (const Op* op : {&second, &third}) {
    EXPECT_EQ(op->status, MCAST_ERR_FABRIC);
    EXPECT_EQ(op->calls, 1);
  }
  EXPECT_EQ(attr().recvs_posted, 0u);
  drop();  // before the operations
}

// A program waits for recvs_posted to become 0, so as to lose nothing that has arrived.
TEST_F(HostSyncGroup, ThatFailsWhileItsQueuePairIsStoppedPostsNoReceiveThatIsGivenBack) {
  start(MCAST_LANE_EAGER);
  answer_ = MCAST_INPROGRESS;
  deliver("12345678", 7);
  EXPECT_EQ(mcast_send_eager(group_, kData, 8, 1), MCAST_ERR_AGAIN);
  (void)mcast_progress(context_);  // it stops
  from(context_)->wait_for_calls();
  (void)mcast_group_stop(group_, "the test says so");
  progress();
  EXPECT_EQ(attr().recvs_posted, 0u);
  mcast_recv_release(group_, received_.at(0).at);
  EXPECT_EQ(attr().recvs_posted, 0u);
  drop();
}

TEST_F(HostSyncGroup, ThatFailsOnItsWayUpCountsEachEagerReceiveOnce) {
  for (const bool is_refused_rtr : {true, false}) {
    start(MCAST_LANE_EAGER);
    deliver("12345678", 7);
    EXPECT_EQ(mcast_send_eager(group_, kData, 8, 1), MCAST_ERR_AGAIN);
    if (is_refused_rtr) {
      device_.refuse_modify = ETIMEDOUT;
    } else {
      device_.receives_left = 2;
    }
    progress();
    device_.receives_left = -1;
    EXPECT_EQ(attr().cause, MCAST_CAUSE_WORK);
    EXPECT_EQ(attr().recvs_posted, 0u);
    drop();
  }
}

// A source that never pauses: before 2^22 packets its queue pair has to move its receive PSN on, or
// it would take the next source's packets for old duplicates.
TEST_F(HostSyncGroup, SynchronisesItsPsnsWithinHalfOfTheirCircleHoweverItsProgramSends) {
  device_.max_message = std::size_t{1} << 31;
  device_.mtu = IBV_MTU_256;
  open({});
  start(MCAST_LANE_BULK);
  constexpr std::size_t kMost = std::size_t{1} << 30;  // 2^22 packets
  EXPECT_EQ(attr().max_message, kMost);
  Op sends[4];
  EXPECT_EQ(mcast_send(group_, kData, kMost + 1, nullptr, 1, &sends[0]), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("send it in parts"));
  pair().states.clear();
  ASSERT_EQ(mcast_send(group_, kData, kMost - 256, nullptr, 1, &sends[0]), MCAST_INPROGRESS);
  ASSERT_EQ(mcast_send(group_, kData, 256, nullptr, 1, &sends[1]), MCAST_INPROGRESS);
  EXPECT_EQ(mcast_send(group_, kData, 1, nullptr, 1, &sends[2]), MCAST_ERR_AGAIN);
  complete_send();
  EXPECT_EQ(mcast_send(group_, kData, 1, nullptr, 1, &sends[2]), MCAST_ERR_AGAIN);
  EXPECT_THAT(pair().states, IsEmpty()) << "a send is still under way";
  device_.complete_send(pair());
  const std::uint32_t next = pair().send_psn;
  progress();
  EXPECT_EQ(pair().states.back(), IBV_QPS_RTS);
  EXPECT_EQ(pair().receive_psn, next);
  EXPECT_EQ(mcast_send(group_, kData, 1, nullptr, 1, &sends[2]), MCAST_INPROGRESS);
  drop();  // before the operations
}

// Some drivers report their own copies of PSNs. A member that set them would send what the others
// take for old duplicates, and nobody would notice.
TEST_F(HostSyncGroup, IsRefusedWherePsnsStandStillOverAMessage) {
  for (const bool sends : {true, false}) {
    device_.has_frozen_psns = true;
    start(MCAST_LANE_BULK);
    Op op;
    if (sends) {
      ASSERT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &op), MCAST_INPROGRESS);
      device_.complete_send(pair());
    } else {
      ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &op), MCAST_INPROGRESS);
      device_.deliver(pair(), "12345678", 7);
    }
    progress();
    EXPECT_EQ(op.status, sends ? MCAST_ERR_NO_DEVICE : MCAST_OK);
    EXPECT_EQ(attr().cause, MCAST_CAUSE_DEVICE);
    EXPECT_THAT(attr().reason, HasSubstr("PSNs stand still"));
    EXPECT_THAT(attr().reason, HasSubstr("set source_change = \"rebase\" on all switches"));
    drop();
  }
}

TEST_F(HostSyncGroup, IsRefusedWhereAQueuePairDoesNotServeAfterAnError) {
  device_.comes_back = false;
  for (int i = 0; i < 2; ++i) {
    start(MCAST_LANE_BULK);
    EXPECT_EQ(mcast_group_test(group_), MCAST_ERR_NO_DEVICE);
    EXPECT_THAT(attr().reason, HasSubstr("could not go to RESET"));
    EXPECT_THAT(attr().reason, HasSubstr("set source_change = \"rebase\" on all switches"));
    EXPECT_THAT(pair().states, ElementsAre(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR));
    drop();
  }
}

TEST_F(HostSyncGroup, AloneLooksAtTheDevice) {
  device_.comes_back = false;
  device_.has_frozen_psns = true;
  make_active(MCAST_LANE_BULK);
  Op op;
  ASSERT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &op), MCAST_INPROGRESS);
  complete_send();
  EXPECT_EQ(op.status, MCAST_OK);
  EXPECT_EQ(mcast_group_test(group_), MCAST_OK) << attr().reason;
}

}  // namespace
}  // namespace cepheus::mcast
