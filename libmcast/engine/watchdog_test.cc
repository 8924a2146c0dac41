#include "libmcast/engine/watchdog.h"

#include <gtest/gtest.h>

namespace cepheus::mcast {
namespace {

using namespace std::chrono_literals;

// Looks every 10 ms.
class Looks {
 public:
  explicit Looks(wire::Duration limit) : watchdog_(limit) {}

  // For `span`; true if the watchdog fired.
  bool over(wire::Duration span, bool waiting) {
    bool fired = false;
    for (const wire::Instant end = now_ + span; now_ < end;) {
      now_ += 10ms;
      fired |= watchdog_.look(now_, completed_, waiting);
    }
    return fired;
  }
  void away(wire::Duration span) { now_ += span; }
  void complete() { ++completed_; }
  void reset() { watchdog_.reset(); }

 private:
  Watchdog watchdog_;
  wire::Instant now_{};
  std::uint64_t completed_ = 0;
};

TEST(Watchdog, FiresWhenNothingCompletesForTheLimit) {
  Looks looks(2s);
  EXPECT_FALSE(looks.over(1900ms, true));
  EXPECT_TRUE(looks.over(200ms, true));
}

TEST(Watchdog, StartsAnewWithEachCompletion) {
  Looks looks(2s);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(looks.over(1900ms, true));
    looks.complete();
  }
}

TEST(Watchdog, StartsAnewWhenTheOthersProveAlive) {
  Looks looks(2s);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(looks.over(1900ms, true));
    looks.reset();
  }
  EXPECT_TRUE(looks.over(2100ms, true));
}

TEST(Watchdog, IsQuietWhileNothingIsOutstanding) {
  Looks looks(2s);
  EXPECT_FALSE(looks.over(10s, false));
  EXPECT_FALSE(looks.over(1900ms, true));
}

TEST(Watchdog, DoesNotCountTimeThatNobodyLookedAt) {
  Looks looks(2s);
  for (int i = 0; i < 5; ++i) {
    looks.away(60s);  // computing, or stopped
    EXPECT_FALSE(looks.over(200ms, true));
  }
}

TEST(Watchdog, StillFiresInAProgramThatLooksRarely) {
  Watchdog watchdog(2s);
  wire::Instant now{};
  int looks = 0;
  while (!watchdog.look(now, 0, true)) {
    now += 500ms;
    ASSERT_LT(++looks, 100);
  }
  EXPECT_EQ(looks, 20);  // 100 ms of each pause
}

TEST(Watchdog, CountsNoTimeTwiceAndNoneBeforeItsFirstLook) {
  Watchdog watchdog(1ns);
  const wire::Instant now{1h};
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(watchdog.look(now, 0, true));
  watchdog.reset();
  EXPECT_FALSE(watchdog.look(now, 0, true));
  EXPECT_TRUE(watchdog.look(now + 1ns, 0, true));
}

}  // namespace
}  // namespace cepheus::mcast
