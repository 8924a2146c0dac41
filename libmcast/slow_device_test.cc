// While the device takes its time for one group, other groups of the context are served: on NICs
// that pin pages a gigabyte takes 100 ms and more, and RTR a second without an answer.
#include <gtest/gtest.h>
#include <mcast/recovery.h>
#include <mcast/write.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "libmcast/fake_group.h"

namespace cepheus::mcast {
namespace {

using wire::MrpType;

constexpr auto kDeadline = std::chrono::seconds(5);

class SlowDevice : public FakeGroup {
 protected:
  SlowDevice() {
    make_active(MCAST_LANE_EAGER);
    other_pair_ = device_.pairs.back().get();
    other_ = std::exchange(group_, nullptr);
  }
  ~SlowDevice() override { mcast_group_destroy(other_); }

  // Runs `slow` on a thread. The device stops in its first `call` (fake::Device::on_call) until
  // another thread has used the other group.
  void expect_others_go_on_during(
      const std::string& call, const std::function<void()>& slow,
      const std::function<void()>& meanwhile = [] {}) {
    SCOPED_TRACE(call);
    std::promise<void> reached, release;
    std::atomic<bool> is_first = true;
    device_.on_call = [&](const std::string& made) {
      if (made != call || !is_first.exchange(false)) return;
      reached.set_value();
      release.get_future().wait();
    };
    std::thread slow_thread(slow);
    if (reached.get_future().wait_for(kDeadline) != std::future_status::ready) {
      ADD_FAILURE() << "the device was not called";
    } else {
      std::promise<void> used;
      std::thread user([&] {
        EXPECT_EQ(mcast_send_eager(other_, kData, 8, 1), MCAST_OK) << mcast_last_error();
        EXPECT_EQ(mcast_group_test(other_), MCAST_OK);
        mcast_progress(context_);
        meanwhile();
        used.set_value();
      });
      EXPECT_EQ(used.get_future().wait_for(kDeadline), std::future_status::ready)
          << "the other group waits for this one's call";
      release.set_value();
      user.join();
    }
    slow_thread.join();
    from(context_)->wait_for_calls();
    device_.on_call = nullptr;
    if (!other_pair_->sends.empty()) device_.complete_send(*other_pair_);
    progress();
  }
  // mcast_progress() alone: progress() also waits for the library's calls.
  void poll() {
    for (int i = 0; i < 130; ++i) mcast_progress(context_);
  }
  void start_host_sync() {
    make(MCAST_LANE_BULK);
    join(wire::MrpHeader::kHostSync);
    inject(MrpType::kActivate);
  }

  fake::Pair* other_pair_ = nullptr;
  mcast_group_h other_ = nullptr;
  Op late_;
};

TEST_F(SlowDevice, OfARegionThatIsPublished) {
  make(MCAST_LANE_BULK);
  expect_others_go_on_during("memory", [this] {
    EXPECT_EQ(mcast_region_publish(group_, 7, buffer_, sizeof buffer_), MCAST_OK);
  });
  EXPECT_EQ(mcast_region_publish(group_, 7, buffer_, sizeof buffer_), MCAST_ERR_INVALID);
}

TEST_F(SlowDevice, OfARegionThatTheSwitchHasForgotten) {
  make(MCAST_LANE_BULK);
  ASSERT_EQ(mcast_region_publish(group_, 7, buffer_, sizeof buffer_), MCAST_OK);
  join();
  confirm_regions();
  progress();
  const std::size_t before = device_.regions;
  ASSERT_EQ(mcast_region_revoke(group_, 7), MCAST_OK);
  progress();
  confirm_regions();
  expect_others_go_on_during(
      "memory", [this] { progress(); },
      [this] {
        EXPECT_EQ(mcast_region_test(group_), MCAST_INPROGRESS) << "it is registered still";
      });
  EXPECT_EQ(mcast_region_test(group_), MCAST_OK);
  EXPECT_EQ(device_.regions, before - 1);
}

TEST_F(SlowDevice, OfARegionWithAKeyOfItsOwn) {
  make(MCAST_LANE_BULK, nullptr, /*same_key=*/true);
  expect_others_go_on_during("memory", [this] {
    EXPECT_EQ(mcast_region_publish(group_, 7, buffer_, sizeof buffer_), MCAST_OK);
  });
  expect_others_go_on_during("memory",
                             [this] { EXPECT_EQ(mcast_region_revoke(group_, 7), MCAST_OK); });
}

TEST_F(SlowDevice, OfASendAndItsEnd) {
  make(MCAST_LANE_BULK);
  become_active_leader();
  const std::size_t before = device_.regions;
  Op send;
  expect_others_go_on_during("memory", [&] {
    EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_INPROGRESS);
  });
  EXPECT_EQ(device_.regions, before + 1);
  device_.complete_send(pair());
  expect_others_go_on_during("memory", [this] { progress(); });
  EXPECT_EQ(send.status, MCAST_OK);
  EXPECT_EQ(device_.regions, before);
}

TEST_F(SlowDevice, OfAReceiveThatIsCanceled) {
  make(MCAST_LANE_BULK);
  Op receive;
  expect_others_go_on_during("memory", [&] {
    EXPECT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &receive), MCAST_INPROGRESS);
  });
  expect_others_go_on_during("memory", [this] { drop(); });
  EXPECT_EQ(receive.status, MCAST_ERR_CANCELED);
}

TEST_F(SlowDevice, OfAGroupThatIsDestroyed) {
  make(MCAST_LANE_BULK);
  ASSERT_EQ(mcast_region_publish(group_, 7, buffer_, sizeof buffer_), MCAST_OK);
  expect_others_go_on_during("memory", [this] { drop(); });
}

TEST_F(SlowDevice, OfAGroupThatIsCreated) {
  for (const char* call : {"create", "INIT", "memory"}) {
    expect_others_go_on_during(call, [this] { make(MCAST_LANE_EAGER); });
    drop();
  }
}

TEST_F(SlowDevice, OfAMemberThatConnects) {
  for (const char* call : {"RTR", "RTS"}) {
    make(MCAST_LANE_BULK);
    inject(MrpType::kRegister);
    expect_others_go_on_during(
        call,
        [this] {
          device_.inject(kLeader, about(MrpType::kConnect));
          poll();
        },
        [this] { EXPECT_EQ(attr().state, MCAST_GROUP_REGISTERING); });
    inject(MrpType::kActivate);
    EXPECT_EQ(mcast_group_test(group_), MCAST_OK) << attr().reason;
    drop();
  }
}

TEST_F(SlowDevice, OfALeaderThatConnects) {
  for (const char* call : {"RTR", "RTS"}) {
    make(MCAST_LANE_BULK);
    expect_others_go_on_during(call, [this] { become_active_leader(); });
    EXPECT_EQ(mcast_group_test(group_), MCAST_OK) << attr().reason;
    drop();
    sent();
  }
}

TEST_F(SlowDevice, OfAGroupThatFails) {
  make(MCAST_LANE_BULK);
  become_active_leader();
  expect_others_go_on_during("ERR", [this] { mcast_group_stop(group_, "the test"); });
}

TEST_F(SlowDevice, OfAQueuePairThatIsDestroyed) {
  make(MCAST_LANE_BULK);
  expect_others_go_on_during("destroy", [this] { drop(); });
}

TEST_F(SlowDevice, OfHostsThatSynchroniseTheirPsns) {
  for (const char* call : {"ERR", "RESET", "INIT", "RTR", "RTS"}) {
    start_host_sync();
    Op receives[3], send;
    for (Op& each : receives) {
      ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &each), MCAST_INPROGRESS);
    }
    deliver("12345678", 7);
    EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_ERR_AGAIN);
    expect_others_go_on_during(
        call,
        [&] {
          while (mcast_send(group_, kData, 8, nullptr, 1, &send) == MCAST_ERR_AGAIN) poll();
        },
        [&] { EXPECT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &late_), MCAST_INPROGRESS); });
    EXPECT_EQ(pair().receives.size(), 3u) << "two of before, and the one of meanwhile";
    EXPECT_EQ(pair().sends.size(), 1u) << attr().reason;
    drop();
  }
}

// An operation that is refused costs no registration.
TEST_F(SlowDevice, IsNotRegisteredForRefusedSends) {
  make(MCAST_LANE_BULK);
  const std::size_t before = device_.registrations.size();
  Op op;
  EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &op), MCAST_ERR_INVALID) << "not active yet";
  become_active_leader();
  std::vector<Op> ops(kDepth);
  for (Op& each : ops) {
    EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &each), MCAST_INPROGRESS);
  }
  EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &op), MCAST_ERR_AGAIN);
  EXPECT_EQ(device_.registrations.size(), before + kDepth);
  drop();
}

}  // namespace
}  // namespace cepheus::mcast
