#include "soft-roce/verbs/drive_policy.h"

#include <gtest/gtest.h>

namespace cepheus::verbs {
namespace {

using namespace std::chrono_literals;

constexpr wire::Instant kStart{1h};

TEST(DrivePolicy, GivesTheThreadANicThatNobodyPolls) {
  const DrivePolicy drive;
  EXPECT_FALSE(drive.leaves_to_program(kStart, false, false));
}

TEST(DrivePolicy, LeavesAProgramAloneForAMomentAfterEachPoll) {
  DrivePolicy drive;
  drive.polled(kStart);
  EXPECT_TRUE(drive.leaves_to_program(kStart + 999us, false, false));
  EXPECT_FALSE(drive.leaves_to_program(kStart + 1ms, false, false)) << "it computes";
}

TEST(DrivePolicy, LeavesAProgramAloneThatNaps) {
  DrivePolicy drive;
  drive.polled(kStart);
  EXPECT_TRUE(drive.leaves_to_program(kStart + 10ms, false, true));
}

TEST(DrivePolicy, DoesNotLeaveAProgramAloneThatIsAboutToSleep) {
  DrivePolicy drive;
  drive.polled(kStart);
  EXPECT_FALSE(drive.leaves_to_program(kStart + 1us, true, false));
}

// What the thread takes while a program has been on a core for `share` of the time.
void take_by_thread(DrivePolicy& drive, int times, double share) {
  static wire::Instant now = kStart;
  static wire::Duration cpu{0};
  drive.look_at_program(now, cpu);
  for (int i = 0; i < times; ++i) {
    now += 1ms;
    cpu += std::chrono::duration_cast<wire::Duration>(1ms * share);
    drive.look_at_program(now, cpu);
    drive.took_by_thread();
  }
}

TEST(DrivePolicy, FindsOutThatAProgramLooksAtItsMemory) {
  DrivePolicy drive;
  take_by_thread(drive, 1, 1);
  EXPECT_FALSE(drive.watches_memory()) << "it may have been late once";
  take_by_thread(drive, 1, 1);
  EXPECT_TRUE(drive.watches_memory());
  drive.polled(kStart);
  EXPECT_FALSE(drive.leaves_to_program(kStart, false, false)) << "only the thread brings it data";
}

TEST(DrivePolicy, TakesAProgramThatWasOffItsCoreForNoneOfThose) {
  DrivePolicy drive;
  take_by_thread(drive, 100, 0.2);
  EXPECT_FALSE(drive.watches_memory());
}

TEST(DrivePolicy, ForgetsWhatAProgramThatPollsTakesItself) {
  DrivePolicy drive;
  take_by_thread(drive, 100, 1);
  int polls = 0;
  for (; drive.watches_memory(); ++polls) drive.took_by_poll();
  EXPECT_GT(polls, 8) << "it polls for the completion of its own answer";
  EXPECT_LT(polls, 100);
}

}  // namespace
}  // namespace cepheus::verbs
