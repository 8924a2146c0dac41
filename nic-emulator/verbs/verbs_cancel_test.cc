// One process, a plain verbs program: its threads are cancelled where libibverbs lets them end.
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <atomic>

#include "nic-emulator/verbs/test_endpoint.h"

namespace cepheus::verbs {
namespace {

class CancelledThread : public ::testing::Test {
 protected:
  // Runs `body` in a thread. True: it was cancelled, and ended within kTimeLimit.
  bool is_cancelled(void* (*body)(void*), void* argument) {
    pthread_t thread{};
    if (::pthread_create(&thread, nullptr, body, argument) != 0) return false;
    if (::pthread_cancel(thread) != 0) return false;
    timespec limit{};
    ::clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += kTimeLimit.count();
    void* result = nullptr;
    return ::pthread_timedjoin_np(thread, &result, &limit) == 0 && result == PTHREAD_CANCELED;
  }

  SwitchProcess fabric_{1};
};

TEST_F(CancelledThread, EndsWhereItWaitsForAnEvent) {
  Endpoint e({.with_channel = true});
  ASSERT_TRUE(is_cancelled(
      [](void* channel) -> void* {
        ibv_cq* cq = nullptr;
        void* context = nullptr;
        ibv_get_cq_event(static_cast<ibv_comp_channel*>(channel), &cq, &context);
        return nullptr;
      },
      e.channel));
  ASSERT_TRUE(is_cancelled(
      [](void* context) -> void* {
        ibv_async_event event{};
        ibv_get_async_event(static_cast<ibv_context*>(context), &event);
        return nullptr;
      },
      e.context));

  // The next waiter gets the next event.
  ASSERT_EQ(ibv_req_notify_cq(e.cq, 0), 0);
  ASSERT_EQ(e.modify_to_error(), 0);
  ASSERT_EQ(e.post_recv(7, 0, 8), 0);
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(e.channel, &cq, &context), 0);
  EXPECT_EQ(cq, e.cq);
  ibv_ack_cq_events(cq, 1);
}

TEST_F(CancelledThread, CompletesAllOtherCallsFirst) {
  std::atomic<bool> is_done{false};
  ASSERT_TRUE(is_cancelled(
      [](void* done) -> void* {
        ::pthread_cancel(::pthread_self());
        ibv_context* const device = open_device();
        ibv_pd* const pd = ibv_alloc_pd(device);
        EXPECT_EQ(ibv_close_device(device), 0);
        EXPECT_EQ(ibv_dealloc_pd(pd), 0);  // ends the NIC
        {
          Endpoint e({.with_channel = true});
          e.connect(e.name());  // to itself
          EXPECT_EQ(ibv_req_notify_cq(e.cq, 0), 0);
          EXPECT_EQ(e.post_recv(1, 0, 8), 0);
          EXPECT_EQ(e.post_send(2, 8, 8), 0);
          for (int i = 0; i < 2; ++i) {
            const auto wc = e.wait();
            EXPECT_TRUE(wc && wc->status == IBV_WC_SUCCESS);
          }
          ibv_wc none{};
          for (int i = 0; i < 10'000; ++i) EXPECT_EQ(ibv_poll_cq(e.cq, 1, &none), 0);
        }
        *static_cast<std::atomic<bool>*>(done) = true;
        ::pthread_testcancel();
        return nullptr;
      },
      &is_done));
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace cepheus::verbs
