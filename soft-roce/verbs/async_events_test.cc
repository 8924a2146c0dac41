#include "soft-roce/verbs/async_events.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>

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

TEST_F(Async, EventsComeInOrderAndTheDescriptorTellsIfThereAreAny) {
  std::uint32_t handed_out = 0;
  EXPECT_FALSE(is_readable());
  events_->post(event(IBV_EVENT_COMM_EST), &handed_out);
  events_->post(event(IBV_EVENT_PORT_ERR), nullptr);
  ibv_async_event got{};
  ASSERT_TRUE(events_->take(got));
  EXPECT_EQ(got.event_type, IBV_EVENT_COMM_EST);
  EXPECT_EQ(handed_out, 1u);
  EXPECT_TRUE(is_readable());
  ASSERT_TRUE(events_->take(got));
  EXPECT_EQ(got.event_type, IBV_EVENT_PORT_ERR);
  EXPECT_FALSE(is_readable());
  EXPECT_FALSE(events_->take(got));
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Async, WithdrawingForgetsOneObjectsEventsOnly) {
  std::uint32_t mine = 0;
  std::uint32_t other = 0;
  events_->post(event(IBV_EVENT_COMM_EST), &mine);
  events_->post(event(IBV_EVENT_QP_FATAL), &other);
  events_->post(event(IBV_EVENT_QP_FATAL), &mine);
  EXPECT_EQ(events_->withdraw(mine), 0u);
  ibv_async_event got{};
  ASSERT_TRUE(events_->take(got));
  EXPECT_EQ(other, 1u);
  EXPECT_FALSE(is_readable());
}

TEST_F(Async, AProgramThatNeverReadsCostsBoundedMemory) {
  for (std::size_t i = 0; i < AsyncEvents::kMost + 5; ++i) {
    events_->post(event(IBV_EVENT_PORT_ERR), nullptr);
  }
  EXPECT_EQ(events_->dropped(), 5u);
}

}  // namespace
}  // namespace cepheus::verbs
