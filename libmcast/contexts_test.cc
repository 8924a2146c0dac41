// Several contexts in one process, memory that outlives them, and fork() in the middle of it, over a
// device that the test plays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "libmcast/fake_group.h"

namespace cepheus::mcast {
namespace {

class SecondContext : public FakeGroup {
 protected:
  SecondContext() {
    mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
    params.progress_timeout_ms = 20'000;  // other settings than the first user's
    params.max_eager_memory = 1 << 20;
    EXPECT_EQ(mcast_context_create(&params, &second_), MCAST_OK) << mcast_last_error();
  }
  ~SecondContext() override {
    if (second_ != nullptr) mcast_context_destroy(second_);
  }
  mcast_context_h second_ = nullptr;
};

TEST_F(SecondContext, HasSettingsOfItsOwn) { EXPECT_NE(second_, context_); }

TEST_F(SecondContext, RunsNoCallbackOfTheFirst) {
  make(MCAST_LANE_BULK);
  become_active();
  Op receive;
  ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &receive), MCAST_INPROGRESS);
  device_.deliver(pair(), "datadata", 5);
  for (int i = 0; i < 130; ++i) mcast_progress(second_);
  EXPECT_EQ(receive.calls, 0);
  progress();
  EXPECT_EQ(receive.calls, 1);
  drop();
}

TEST_F(SecondContext, LeavesTheFirstAsItIs) {
  make(MCAST_LANE_BULK);
  become_active();
  mcast_context_destroy(std::exchange(second_, nullptr));
  Op send;
  ASSERT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_INPROGRESS);
  device_.complete_send(pair());
  progress();
  EXPECT_EQ(send.status, MCAST_OK);
  drop();
}

TEST_F(SecondContext, HasMemoryThatServesNoGroupOfTheFirst) {
  make(MCAST_LANE_BULK);
  become_active();
  mcast_mem_h memory = nullptr;
  ASSERT_EQ(mcast_mem_register(second_, buffer_, sizeof buffer_, &memory), MCAST_OK);
  Op send;
  EXPECT_EQ(mcast_send(group_, buffer_, 8, memory, 1, &send), MCAST_ERR_INVALID);
  mcast_mem_deregister(memory);
  drop();
}

TEST_F(SecondContext, MayEndBeforeItsMemoryDoes) {
  const int before = device_.opened;
  mcast_mem_h memory = nullptr;
  ASSERT_EQ(mcast_mem_register(second_, buffer_, sizeof buffer_, &memory), MCAST_OK);
  const std::size_t regions = device_.regions;
  mcast_context_destroy(std::exchange(second_, nullptr));
  EXPECT_EQ(device_.opened, before) << "the memory is registered with it";
  mcast_mem_deregister(memory);
  EXPECT_EQ(device_.regions, regions - 1);
  EXPECT_EQ(device_.opened, before - 1);
}

// A device library's lock: taken by its calls, and by its own handler of fork().
std::mutex device_lock;
std::atomic<bool> is_forking{false}, is_opening{false};

void hold_device_across_forks() {
  pthread_atfork(
      [] {
        device_lock.lock();
        is_forking = true;
      },
      [] { device_lock.unlock(); }, [] { device_lock.unlock(); });
}

// While the device's lock is taken by fork(), another thread is about to take it in an open.
void open_while_forking() {
  alarm(20);  // a deadlock ends the test
  mcast_context_h first = nullptr;
  if (mcast_context_create(nullptr, &first) != MCAST_OK) _exit(2);
  hold_device_across_forks();  // as a provider does that is loaded by the first open
  fake::Device::instance().on_open = [] {
    is_opening = true;
    while (!is_forking) std::this_thread::yield();
    const std::lock_guard lock(device_lock);
  };
  mcast_context_h second = nullptr;
  std::thread opener([&] { mcast_context_create(nullptr, &second); });
  while (!is_opening) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    fake::Device::instance().on_open = nullptr;
    mcast_context_attr_t attr;
    const bool refuses = mcast_context_query(first, &attr) == MCAST_ERR_INVALID;
    mcast_context_h own = nullptr;
    const bool serves = mcast_context_create(nullptr, &own) == MCAST_OK;
    if (serves) mcast_context_destroy(own);
    mcast_context_destroy(first);
    _exit(refuses && serves ? 0 : 1);
  }
  opener.join();
  int state = 0;
  waitpid(child, &state, 0);
  _exit(second != nullptr && WIFEXITED(state) ? WEXITSTATUS(state) : 3);
}

TEST(ForkDeathTest, WaitsForNobodyWhoOpensAContext) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(open_while_forking(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cepheus::mcast
