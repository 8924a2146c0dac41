#include "libmcast/control_turns.h"

#include <gtest/gtest.h>

#include "libmcast/engine/watchdog.h"

namespace cepheus::mcast {
namespace {

using namespace std::chrono_literals;

constexpr wire::Instant kStart{1h};

// The time after which a watchdog of 2 s fires in a program that calls mcast_progress() once in
// `pause`.
wire::Duration fires_after(wire::Duration pause) {
  ControlTurns turns;
  Watchdog watchdog(2s);
  for (wire::Instant now = kStart; now < kStart + 1min; now += pause) {
    if (turns.take(now) && watchdog.look(now, 0, true)) return now - kStart;
  }
  return 1min;
}

TEST(ControlTurns, LetTheWatchdogFireInTimeAtAnyRateOfCalls) {
  for (const wire::Duration pause :
       {wire::Duration(10us), wire::Duration(1ms), wire::Duration(10ms), wire::Duration(60ms),
        wire::Duration(100ms)}) {
    EXPECT_GE(fires_after(pause), 2s) << pause.count() << " ns";
    EXPECT_LE(fires_after(pause), 2s + 2 * ControlTurns::kLongest) << pause.count() << " ns";
  }
}

TEST(ControlTurns, TakeOneCallIn64OfAProgramThatPolls) {
  ControlTurns turns;
  int taken = 0;
  for (int i = 0; i < 6400; ++i) taken += turns.take(kStart + i * 100ns);
  EXPECT_EQ(taken, 100);
}

TEST(ControlTurns, ComeAtOnceBeforeTheCallerSleeps) {
  ControlTurns turns;
  EXPECT_TRUE(turns.take(kStart));
  EXPECT_FALSE(turns.take(kStart));
  turns.hasten();
  EXPECT_TRUE(turns.take(kStart));
  EXPECT_FALSE(turns.take(kStart));
}

}  // namespace
}  // namespace cepheus::mcast
