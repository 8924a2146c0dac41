#include "nic-emulator/verbs/queues/notification.h"

#include <gtest/gtest.h>

namespace cepheus::verbs {
namespace {

class FarNotification : public ::testing::TestWithParam<std::uint64_t> {};

// A program that fetches one event, polls for as many completions, and arms again.
TEST_P(FarNotification, ArmingBehindNewCompletionsNotifiesAfterAnyNumberOfUnarmedOnes) {
  const std::uint64_t far = GetParam();
  Notification it;
  EXPECT_FALSE(it.armed(false, 0, 0));
  EXPECT_TRUE(it.pushed(1, false));
  for (const std::uint64_t head : {far - 1, far, far + 1}) {
    Notification then = it;
    EXPECT_FALSE(then.armed(false, head, head)) << "the queue is empty";
    then.disarm();
    EXPECT_TRUE(then.armed(false, head - 1, head)) << "it has not been taken";
    EXPECT_FALSE(then.armed(false, head - 1, head)) << "it was notified";
  }
}

TEST_P(FarNotification, AnOldSolicitedCompletionIsNotTakenForANewOne) {
  const std::uint64_t far = GetParam();
  Notification it;
  EXPECT_FALSE(it.pushed(1, true));
  for (const std::uint64_t head : {far - 1, far, far + 1}) {
    Notification then = it;
    EXPECT_FALSE(then.armed(true, head - 1, head)) << "the waiting completion does not count";
    EXPECT_TRUE(then.pushed(head + 1, true));
  }
}

INSTANTIATE_TEST_SUITE_P(Edges, FarNotification,
                         ::testing::Values(std::uint64_t{1} << 23, std::uint64_t{1} << 24,
                                           std::uint64_t{1} << 31, std::uint64_t{3} << 30,
                                           std::uint64_t{1} << 32));

}  // namespace
}  // namespace cepheus::verbs
