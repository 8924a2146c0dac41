#include "switch-emulator/engine/group/round_trip.h"

#include <gtest/gtest.h>

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

TEST(RoundTrip, TakesTwiceAsLongPlusAFloor) {
  RoundTrip trip;
  EXPECT_FALSE(trip.is_known());
  for (int i = 0; i < 100; ++i) trip.add(1ms);
  EXPECT_TRUE(trip.is_known());
  EXPECT_NEAR(static_cast<double>(trip.wait(4ms) / 1us), 6000, 10);
  EXPECT_NEAR(static_cast<double>(trip.wait(0ms) / 1us), 2000, 10);
}

TEST(RoundTrip, ThatVariesGetsALongerWait) {
  RoundTrip trip;
  for (int i = 0; i < 100; ++i) trip.add(i % 2 == 0 ? 1ms : 9ms);
  EXPECT_GT(trip.wait(0ms), 2 * 5ms + 12ms);
  EXPECT_LT(trip.wait(0ms), 2 * 5ms + 20ms);
}

TEST(RoundTrip, DoublesTheWaitUntilItIsMeasuredAgain) {
  RoundTrip trip;
  trip.add(1ms);
  const wire::Duration first = trip.wait(4ms);
  trip.back_off();
  trip.back_off();
  EXPECT_EQ(trip.wait(4ms), 4 * first);
  for (int i = 0; i < 100; ++i) trip.back_off();
  EXPECT_EQ(trip.wait(4ms), 64 * first);
  trip.add(1ms);
  EXPECT_LE(trip.wait(4ms), first);
}

TEST(RoundTrip, IsGuessedUntilItIsMeasured) {
  RoundTrip trip;
  trip.guess(3ms);
  trip.guess(5ms);
  EXPECT_EQ(trip.first_wait(4ms), 2 * 3ms + 6ms);
  trip.add(1ms);
  EXPECT_EQ(trip.first_wait(4ms), 2 * 1ms + 4ms);
  trip.guess(3ms);
  EXPECT_EQ(trip.first_wait(4ms), 2 * 1ms + 4ms);
}

TEST(RoundTrip, StaysInItsBounds) {
  RoundTrip trip;
  for (int i = 0; i < 100; ++i) trip.add(i % 2 == 0 ? wire::Duration(0) : wire::Duration(24h));
  EXPECT_GT(trip.wait(0ms), 0s);
  EXPECT_LT(trip.wait(0ms), 10s);
}

}  // namespace
}  // namespace cepheus::fabric
