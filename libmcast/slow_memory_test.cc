// While the device registers or deregisters memory for one group, other groups of the context are
// served: on NICs that pin pages a gigabyte takes 100 ms and more.
#include <gtest/gtest.h>
#include <mcast/write.h>

#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "libmcast/fake_group.h"

namespace cepheus::mcast {
namespace {

using wire::MrpType;

constexpr auto kDeadline = std::chrono::seconds(5);

class SlowMemory : public FakeGroup {
 protected:
  SlowMemory() {
    make(MCAST_LANE_EAGER);
    become_active();
    other_ = std::exchange(group_, nullptr);
  }
  ~SlowMemory() override { mcast_group_destroy(other_); }

  // Runs `slow` on a thread. The device stops in its first call for memory until another thread has
  // used the other group.
  void expect_others_go_on_during(
      const std::function<void()>& slow, const std::function<void()>& meanwhile = [] {}) {
    std::promise<void> reached, release;
    device_.on_next_memory = [&] {
      reached.set_value();
      release.get_future().wait();
    };
    std::thread slow_thread(slow);
    if (reached.get_future().wait_for(kDeadline) != std::future_status::ready) {
      ADD_FAILURE() << "the device was not asked for memory";
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
          << "the other group waits for this one's memory";
      release.set_value();
      user.join();
    }
    slow_thread.join();
    device_.on_next_memory = nullptr;
  }
  mcast_group_h other_ = nullptr;
};

TEST_F(SlowMemory, OfARegionThatIsPublished) {
  make(MCAST_LANE_BULK);
  expect_others_go_on_during(
      [this] { EXPECT_EQ(mcast_region_publish(group_, 7, buffer_, sizeof buffer_), MCAST_OK); });
  EXPECT_EQ(mcast_region_publish(group_, 7, buffer_, sizeof buffer_), MCAST_ERR_INVALID);
}

TEST_F(SlowMemory, OfARegionThatTheSwitchHasForgotten) {
  make(MCAST_LANE_BULK);
  ASSERT_EQ(mcast_region_publish(group_, 7, buffer_, sizeof buffer_), MCAST_OK);
  inject(MrpType::kRegister);
  confirm_regions();
  progress();
  const std::size_t before = device_.regions;
  ASSERT_EQ(mcast_region_revoke(group_, 7), MCAST_OK);
  progress();
  confirm_regions();
  expect_others_go_on_during([this] { progress(); },
                             [this] {
                               EXPECT_EQ(mcast_region_test(group_), MCAST_INPROGRESS)
                                   << "it is registered still";
                             });
  EXPECT_EQ(mcast_region_test(group_), MCAST_OK);
  EXPECT_EQ(device_.regions, before - 1);
}

TEST_F(SlowMemory, OfARegionWithAKeyOfItsOwn) {
  make(MCAST_LANE_BULK, nullptr, /*same_key=*/true);
  expect_others_go_on_during(
      [this] { EXPECT_EQ(mcast_region_publish(group_, 7, buffer_, sizeof buffer_), MCAST_OK); });
  expect_others_go_on_during([this] { EXPECT_EQ(mcast_region_revoke(group_, 7), MCAST_OK); });
}

TEST_F(SlowMemory, OfASendAndItsEnd) {
  make(MCAST_LANE_BULK);
  become_active_leader();
  const std::size_t before = device_.regions;
  Op send;
  expect_others_go_on_during(
      [&] { EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_INPROGRESS); });
  EXPECT_EQ(device_.regions, before + 1);
  device_.complete_send(pair());
  expect_others_go_on_during([this] { progress(); });
  EXPECT_EQ(send.status, MCAST_OK);
  EXPECT_EQ(device_.regions, before);
}

TEST_F(SlowMemory, OfAReceiveThatIsCanceled) {
  make(MCAST_LANE_BULK);
  Op receive;
  expect_others_go_on_during(
      [&] { EXPECT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &receive), MCAST_INPROGRESS); });
  expect_others_go_on_during([this] { drop(); });
  EXPECT_EQ(receive.status, MCAST_ERR_CANCELED);
}

TEST_F(SlowMemory, OfAGroupThatIsDestroyed) {
  make(MCAST_LANE_BULK);
  ASSERT_EQ(mcast_region_publish(group_, 7, buffer_, sizeof buffer_), MCAST_OK);
  expect_others_go_on_during([this] { drop(); });
}

// An operation that is refused costs no registration.
TEST_F(SlowMemory, IsNotRegisteredForRefusedSends) {
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
