#include "nic-emulator/verbs/device/timer_turn.h"

#include <gtest/gtest.h>

namespace cepheus::verbs {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRing = 1024;
constexpr std::size_t kBatch = 64;
constexpr wire::Instant kDeadline{1h};

TEST(TimerTurn, ComesWithTheDeadline) {
  TimerTurn turn(kRing);
  EXPECT_FALSE(turn.may_fire(kDeadline - 1ns, kDeadline, 0, true));
  EXPECT_TRUE(turn.may_fire(kDeadline, kDeadline, 0, true));
}

// A process that was stopped finds its peers' answers in the ring, long after their deadline.
TEST(TimerTurn, ComesAfterFramesThatWaitedInTheRing) {
  TimerTurn turn(kRing);
  for (std::size_t taken = kBatch; taken < kRing; taken += kBatch) {
    EXPECT_FALSE(turn.may_fire(kDeadline + 5s, kDeadline, kBatch, false)) << taken;
  }
  EXPECT_TRUE(turn.may_fire(kDeadline + 5s, kDeadline, kBatch - 1, true));
}

TEST(TimerTurn, ComesThoughPacketsKeepComing) {
  TimerTurn turn(kRing);
  EXPECT_TRUE(turn.may_fire(kDeadline, kDeadline, 1, true)) << "a trickle";
  int batches = 0;
  while (!turn.may_fire(kDeadline + 1s, kDeadline, kBatch, false)) {
    ASSERT_LT(++batches, 1000) << "a stream that never leaves the ring empty";
  }
}

// Each new deadline waits for the frames in the ring at that time, not at an earlier deadline.
TEST(TimerTurn, CountsAnewForEachDeadline) {
  TimerTurn turn(kRing);
  for (std::size_t taken = kBatch; taken < kRing; taken += kBatch) {
    EXPECT_FALSE(turn.may_fire(kDeadline, kDeadline, kBatch, false));
  }
  EXPECT_FALSE(turn.may_fire(kDeadline, kDeadline + 1s, kBatch, false)) << "an answer moved it on";
  EXPECT_FALSE(turn.may_fire(kDeadline + 1s, kDeadline + 1s, kBatch, false));
}

}  // namespace
}  // namespace cepheus::verbs
