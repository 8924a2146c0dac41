#include "collectives/core/speed_guard.h"

#include <gtest/gtest.h>

#include <random>

namespace cepheus::coll {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kMega = std::size_t{1} << 20;

// At `rate` bytes per nanosecond.
nanoseconds time_of(std::size_t bytes, double rate) {
  return nanoseconds(static_cast<long>(static_cast<double>(bytes) / rate));
}

void warm_up(SpeedGuard& guard, std::size_t bytes, double rate) {
  for (int i = 0; i < SpeedGuard::kWarmUp; ++i) {
    ASSERT_FALSE(guard.note(bytes, time_of(bytes, rate)));
  }
}

TEST(SpeedGuard, BarksAfterALastingDropBelowHalf) {
  SpeedGuard guard;
  warm_up(guard, kMega, 1.0);
  int calls = 1;
  while (!guard.note(kMega, time_of(kMega, 0.45))) ASSERT_LT(++calls, 1000);
  EXPECT_EQ(calls, SpeedGuard::kSlowScore);
}

TEST(SpeedGuard, AcceptsWhatIsAboveHalf) {
  SpeedGuard guard;
  warm_up(guard, kMega, 1.0);
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(guard.note(kMega, time_of(kMega, 0.55)));
}

TEST(SpeedGuard, ComparesOnlyWithinASizeClass) {
  SpeedGuard guard;
  warm_up(guard, 16 * kMega, 2.0);
  warm_up(guard, 128 << 10, 0.2);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(guard.note(16 * kMega, time_of(16 * kMega, 2.0)));
    ASSERT_FALSE(guard.note(128 << 10, time_of(128 << 10, 0.2)));
  }
}

TEST(SpeedGuard, IsNotFooledByNoise) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::lognormal_distribution<double> jitter(0, 0.5);
    std::bernoulli_distribution stall(
        0.3);  // the machine has better things to do: ten times slower
    SpeedGuard guard;
    for (int i = 0; i < 100'000; ++i) {
      const double rate = jitter(random) * (stall(random) ? 0.1 : 1.0);
      ASSERT_FALSE(guard.note(kMega, time_of(kMega, rate))) << i;
    }
  }
}

TEST(SpeedGuard, NoticesADropUnderNoise) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::lognormal_distribution<double> jitter(0, 0.5);
    SpeedGuard guard;
    for (int i = 0; i < 1000; ++i) ASSERT_FALSE(guard.note(kMega, time_of(kMega, jitter(random))));
    int calls = 1;
    while (!guard.note(kMega, time_of(kMega, 0.15 * jitter(random)))) ASSERT_LT(++calls, 200);
  }
}

TEST(SpeedGuard, LearnsAnewAfterIt) {
  SpeedGuard guard;
  warm_up(guard, kMega, 1.0);
  while (!guard.note(kMega, time_of(kMega, 0.3))) {
  }
  EXPECT_EQ(guard.usual(kMega), 0);
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(guard.note(kMega, time_of(kMega, 0.3)));
}

TEST(SpeedGuard, FollowsWhatSlowlyChanges) {
  SpeedGuard guard;
  double rate = 8.0;
  warm_up(guard, kMega, rate);
  for (; rate > 1.0; rate *= 0.99) ASSERT_FALSE(guard.note(kMega, time_of(kMega, rate)));
}

}  // namespace
}  // namespace cepheus::coll
