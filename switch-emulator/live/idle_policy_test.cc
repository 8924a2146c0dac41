#include "switch-emulator/live/idle_policy.h"

#include <gtest/gtest.h>

namespace cepheus::live {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

wire::Instant at(wire::Duration time) { return wire::Instant(std::chrono::hours(1) + time); }

TEST(IdlePolicy, LooksAgainForItsBudgetAfterWork) {
  IdlePolicy idle(microseconds(20));
  idle.worked(at(microseconds(0)), 1);
  EXPECT_FALSE(idle.should_sleep(at(microseconds(19))));
  EXPECT_TRUE(idle.should_sleep(at(microseconds(20))));
}

TEST(IdlePolicy, GoesOnLookingWhileYieldsFindNobodyElse) {
  IdlePolicy idle(microseconds(20));
  idle.worked(at(microseconds(0)), 1);
  for (int n = 0; n < 10; ++n) idle.yielded(at(microseconds(n)), at(microseconds(n + 1)));
  EXPECT_FALSE(idle.should_sleep(at(microseconds(11))));
}

TEST(IdlePolicy, SleepsAtOnceForAWhileAfterASlowYield) {
  IdlePolicy idle(microseconds(20));
  idle.worked(at(microseconds(0)), 1);
  idle.yielded(at(microseconds(1)), at(milliseconds(3)));
  idle.worked(at(milliseconds(4)), 1);
  EXPECT_TRUE(idle.should_sleep(at(milliseconds(4))));
  idle.worked(at(milliseconds(30)), 1);
  EXPECT_FALSE(idle.should_sleep(at(milliseconds(30))));
}

TEST(IdlePolicy, SleepsAtOnceAmongBulkData) {
  IdlePolicy idle(microseconds(20));
  idle.worked(at(microseconds(0)), 50);
  EXPECT_FALSE(idle.should_sleep(at(microseconds(1)))) << "a few frames";
  idle.worked(at(microseconds(2)), 50);
  EXPECT_FALSE(idle.should_sleep(at(microseconds(3)))) << "again a few";
  idle.worked(at(microseconds(4)), 50);
  idle.worked(at(microseconds(5)), 50);
  EXPECT_TRUE(idle.should_sleep(at(microseconds(6)))) << "many in a row";
  idle.worked(at(microseconds(500)), 1);
  EXPECT_TRUE(idle.should_sleep(at(microseconds(501)))) << "an acknowledgement among them";
  idle.worked(at(microseconds(1100)), 1);
  EXPECT_FALSE(idle.should_sleep(at(microseconds(1101)))) << "they are over";
}

TEST(IdlePolicy, TellsProgramsThatComputeFromProgramsThatPoll) {
  IdlePolicy idle(microseconds(20));
  idle.yielded(at(milliseconds(0)), at(milliseconds(0) + microseconds(500)));
  EXPECT_FALSE(idle.sees_computing());
  idle.yielded(at(milliseconds(20)), at(milliseconds(23)));
  EXPECT_TRUE(idle.sees_computing());
  idle.yielded(at(milliseconds(43)), at(milliseconds(43)));
  EXPECT_FALSE(idle.sees_computing());
}

}  // namespace
}  // namespace cepheus::live
