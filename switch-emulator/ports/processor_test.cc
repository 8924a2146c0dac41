#include "switch-emulator/ports/processor.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

TEST(FineTimers, LastAsLongAsTheyLive) {
  ASSERT_EQ(::prctl(PR_SET_TIMERSLACK, 40'000UL), 0);
  {
    const FineTimers fine;
    EXPECT_EQ(::prctl(PR_GET_TIMERSLACK), 1000);
  }
  EXPECT_EQ(::prctl(PR_GET_TIMERSLACK), 40'000);
}

TEST(CostOfSleeping, IsMicrosecondsAndLeavesTheTimersAsTheyWere) {
  ASSERT_EQ(::prctl(PR_SET_TIMERSLACK, 40'000UL), 0);
  EXPECT_GE(cost_of_sleeping(), 5us);
  EXPECT_LE(cost_of_sleeping(), 60us);
  EXPECT_EQ(::prctl(PR_GET_TIMERSLACK), 40'000);
}

}  // namespace
}  // namespace cepheus::fabric
