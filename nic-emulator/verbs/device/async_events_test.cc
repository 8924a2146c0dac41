#include "nic-emulator/verbs/device/async_events.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

namespace cepheus::verbs {
namespace {

class Async : public ::testing::Test {
 protected:
  Async() { ::fcntl(events_->fd(), F_SETFL, O_NONBLOCK); }

  static ibv_async_event event(ibv_event_type type) {
    ibv_async_event e{};
    e.event_type = type;
    return e;
  }
  bool is_readable() const {
    pollfd want{events_->fd(), POLLIN, 0};
    return ::poll(&want, 1, 0) == 1;
  }
  std::unique_ptr<AsyncEvents> events_ = *AsyncEvents::create();
};

TEST_F(Async, EventsComeInOrderAndTheDescriptorIsReadableWithAny) {
  AsyncSource pair, port;
  EXPECT_FALSE(is_readable());
  events_->post(event(IBV_EVENT_COMM_EST), pair);
  events_->post(event(IBV_EVENT_PORT_ERR), port);
  ibv_async_event got{};
  ASSERT_TRUE(events_->take(got));
  EXPECT_EQ(got.event_type, IBV_EVENT_COMM_EST);
  EXPECT_EQ(events_->withdraw(pair), 1u);
  EXPECT_TRUE(is_readable());
  ASSERT_TRUE(events_->take(got));
  EXPECT_EQ(got.event_type, IBV_EVENT_PORT_ERR);
  EXPECT_FALSE(is_readable());
  EXPECT_FALSE(events_->take(got));
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Async, WithdrawingForgetsOneObjectsEventsOnly) {
  AsyncSource mine, other;
  events_->post(event(IBV_EVENT_COMM_EST), mine);
  events_->post(event(IBV_EVENT_QP_FATAL), other);
  events_->post(event(IBV_EVENT_QP_FATAL), mine);
  EXPECT_EQ(events_->withdraw(mine), 0u);
  ibv_async_event got{};
  ASSERT_TRUE(events_->take(got));
  EXPECT_EQ(events_->withdraw(other), 1u);
  EXPECT_FALSE(is_readable());
}

// A thread that waits for an event while signals come.
class AsyncSignals : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer delivers no signal to a thread that waits in a futex: use "
                    "another build";
#endif
    waiter_ = std::thread([this] {
      ibv_async_event got{};
      took_ = events_->take(got);
      error_ = errno;
      is_over_ = true;
    });
  }
  ~AsyncSignals() override { ::sigaction(SIGUSR1, &before_, nullptr); }

  void handle(int flags) {
    struct sigaction action {};
    action.sa_handler = [](int) { ++handled; };
    action.sa_flags = flags;
    ::sigaction(SIGUSR1, &action, &before_);
    handled = 0;
  }
  // Returns once the handler has run.
  void interrupt() {
    const int old = handled;
    ::pthread_kill(waiter_.native_handle(), SIGUSR1);
    while (handled == old && !is_over_) ::sched_yield();
  }

  static inline std::atomic<int> handled{0};
  std::unique_ptr<AsyncEvents> events_ = *AsyncEvents::create();
  struct sigaction before_ {};
  bool took_ = false;
  int error_ = 0;
  std::atomic<bool> is_over_{false};
  std::thread waiter_;
};

TEST_F(AsyncSignals, ThatRestartCallsDoNotEndTheWait) {
  handle(SA_RESTART);
  for (int i = 0; i < 200; ++i) interrupt();
  EXPECT_FALSE(is_over_);
  AsyncSource port;
  events_->post({}, port);
  waiter_.join();
  EXPECT_TRUE(took_);
}

TEST_F(AsyncSignals, ThatDoNotRestartCallsEndItWithEintr) {
  handle(0);
  while (!is_over_) interrupt();
  waiter_.join();
  EXPECT_FALSE(took_);
  EXPECT_EQ(error_, EINTR);
}

TEST_F(Async, OneOfEachObjectAndTypeWaitsAndNoneIsLost) {
  constexpr std::size_t kObjects = 5000;
  std::vector<AsyncSource> objects(kObjects);
  for (int round = 0; round < 2; ++round) {
    for (AsyncSource& each : objects) events_->post(event(IBV_EVENT_QP_LAST_WQE_REACHED), each);
  }
  events_->post(event(IBV_EVENT_QP_FATAL), objects[0]);
  ibv_async_event got{};
  for (std::size_t i = 0; i < kObjects + 1; ++i) ASSERT_TRUE(events_->take(got)) << i;
  EXPECT_EQ(got.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_FALSE(events_->take(got));

  events_->post(event(IBV_EVENT_QP_FATAL), objects[0]);  // fetched before: news
  EXPECT_TRUE(events_->take(got));
  EXPECT_EQ(events_->withdraw(objects[0]), 3u);
}

}  // namespace
}  // namespace cepheus::verbs
