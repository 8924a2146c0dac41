#include "nic-emulator/verbs/device/drive_policy.h"

#include <gtest/gtest.h>

namespace cepheus::verbs {
namespace {

using namespace std::chrono_literals;

constexpr wire::Instant kStart{1h};

TEST(DrivePolicy, GivesTheThreadANicWithoutPolls) {
  const DrivePolicy drive;
  EXPECT_FALSE(drive.leaves_to_program(kStart, false, false));
}

TEST(DrivePolicy, LeavesAProgramAloneForAMomentAfterEachPoll) {
  DrivePolicy drive;
  drive.polled(kStart);
  EXPECT_TRUE(drive.leaves_to_program(kStart + 999us, false, false));
  EXPECT_FALSE(drive.leaves_to_program(kStart + 1ms, false, false)) << "it computes";
}

TEST(DrivePolicy, LetsTheThreadSleepLongerAfterLongerPolling) {
  EXPECT_EQ(DrivePolicy::until_next_check(0ms), 1ms);
  EXPECT_EQ(DrivePolicy::until_next_check(8ms), 1ms) << "a program that waits now and then";
  EXPECT_EQ(DrivePolicy::until_next_check(24ms), 3ms);
  EXPECT_EQ(DrivePolicy::until_next_check(1h), 4ms) << "a time-out may be as short as 8 ms";
}

TEST(DrivePolicy, LeavesASleepingProgramAlone) {
  DrivePolicy drive;
  drive.polled(kStart);
  EXPECT_TRUE(drive.leaves_to_program(kStart + 10ms, false, true));
}

TEST(DrivePolicy, TakesOverFromAProgramThatIsAboutToSleep) {
  DrivePolicy drive;
  drive.polled(kStart);
  EXPECT_FALSE(drive.leaves_to_program(kStart + 1us, true, false));
}

TEST(DrivePolicy, DetectsAProgramThatReadsItsMemory) {
  DrivePolicy drive;
  drive.thread_took_writes();
  EXPECT_FALSE(drive.watches_memory()) << "it may have been late once";
  drive.thread_took_writes();
  EXPECT_TRUE(drive.watches_memory());
  drive.polled(kStart);
  EXPECT_FALSE(drive.leaves_to_program(kStart, false, false))
      << "only the thread takes its data in";
}

TEST(DrivePolicy, ForgetsThatWhileTheProgramTakesPacketsItself) {
  DrivePolicy drive;
  for (int i = 0; i < 100; ++i) drive.thread_took_writes();
  int polls = 0;
  for (; drive.watches_memory(); ++polls) drive.program_took();
  EXPECT_GT(polls, 8) << "it polls for the completion of its own answer";
  EXPECT_LT(polls, 100);
  for (int i = 0; i < 100; ++i) drive.program_took();
  drive.thread_took_writes();
  drive.thread_took_writes();
  EXPECT_TRUE(drive.watches_memory()) << "it starts again";
}

}  // namespace
}  // namespace cepheus::verbs
