#include "switch-emulator/ports/frame_queues.h"

#include <gtest/gtest.h>

namespace cepheus::fabric {
namespace {

wire::Frame numbered(std::uint32_t n) {
  wire::Frame frame{};
  frame.icrc = n;
  return frame;
}

TEST(FrameQueues, GiveEachQueueItsFramesInTheirOrder) {
  FrameQueues queues(16);
  FrameQueues::Queue even, odd;
  for (std::uint32_t n = 0; n < 8; ++n) {
    ASSERT_TRUE(queues.push(n % 2 == 0 ? even : odd, numbered(n)));
  }
  wire::Frame frame;
  for (std::uint32_t n = 0; n < 8; ++n) {
    ASSERT_TRUE(queues.pop(n % 2 == 0 ? even : odd, frame));
    EXPECT_EQ(frame.icrc, n);
  }
  EXPECT_FALSE(queues.pop(even, frame));
  EXPECT_TRUE(even.is_empty());
}

TEST(FrameQueues, LeaveAThirdToOthers) {
  FrameQueues queues(300);
  FrameQueues::Queue flood, other;
  std::uint32_t held = 0;
  while (queues.push(flood, numbered(held))) ++held;
  EXPECT_EQ(held, 200u);
  for (std::uint32_t n = 0; n < 40; ++n) EXPECT_TRUE(queues.push(other, numbered(n))) << n;
}

TEST(FrameQueues, ReuseFreedEntries) {
  FrameQueues queues(8);
  FrameQueues::Queue queue;
  wire::Frame frame;
  for (std::uint32_t n = 0; n < 1000; ++n) {
    ASSERT_TRUE(queues.push(queue, numbered(n)));
    ASSERT_TRUE(queues.push(queue, numbered(n + 1)));
    ASSERT_TRUE(queues.pop(queue, frame));
    ASSERT_EQ(frame.icrc, n);
    ASSERT_TRUE(queues.pop(queue, frame));
    ASSERT_EQ(frame.icrc, n + 1);
  }
}

}  // namespace
}  // namespace cepheus::fabric
