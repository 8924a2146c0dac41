#include "libmcast/watchdog.h"

#include <gtest/gtest.h>

#include "controller/registration.h"
#include "libmcast/device.h"

namespace cepheus::mcast {
namespace {

using namespace std::chrono_literals;

// Looks every 10 ms.
class Looks {
 public:
  explicit Looks(wire::Duration limit) : watchdog_(limit) {}

  // For `span`; true if the watchdog barked.
  bool over(wire::Duration span, bool waiting) {
    bool barked = false;
    for (const wire::Instant end = now_ + span; now_ < end;) {
      now_ += 10ms;
      barked |= watchdog_.look(now_, completed_, waiting);
    }
    return barked;
  }
  void away(wire::Duration span) { now_ += span; }
  void complete() { ++completed_; }
  void calm() { watchdog_.calm(); }

 private:
  Watchdog watchdog_;
  wire::Instant now_{};
  std::uint64_t completed_ = 0;
};

TEST(Watchdog, BarksWhenNothingCompletesForTheLimit) {
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

TEST(Watchdog, StartsAnewWhenItHearsThatTheOthersAreAlive) {
  Looks looks(2s);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(looks.over(1900ms, true));
    looks.calm();
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

TEST(Watchdog, StillBarksAtAProgramThatLooksRarely) {
  Watchdog watchdog(2s);
  wire::Instant now{};
  int looks = 0;
  while (!watchdog.look(now, 0, true)) {
    now += 500ms;
    ASSERT_LT(++looks, 100);
  }
  EXPECT_EQ(looks, 20);  // 100 ms of each pause
}

TEST(Patience, OfASenderOutlastsTheDevicesRetriesWhateverIsAsked) {
  EXPECT_EQ(sender_patience(2s, kSoftRoceTimers), 2s);
  EXPECT_EQ(sender_patience(200ms, kSoftRoceTimers), retry_time(kSoftRoceTimers));
  EXPECT_EQ(retry_time(kDefaultTimers), 8 * 4096ns * (1 << 18));
  EXPECT_EQ(sender_patience(2s, kDefaultTimers), retry_time(kDefaultTimers));
}

// A member that died is taken out before the others give up what they sent.
TEST(Patience, OfASenderOutlastsAMembersEviction) {
  EXPECT_GT(sender_patience({}, kSoftRoceTimers), mrp::RegistrationConfig{}.evict_after);
  EXPECT_GT(sender_patience({}, kDefaultTimers), mrp::RegistrationConfig{}.evict_after);
}

TEST(Patience, OfAReceiverIsThatOfASenderIfThatIsLong) {
  EXPECT_EQ(receiver_patience({}), wire::times::kReceiverGivesUp);
  EXPECT_EQ(receiver_patience(300ms), wire::times::kReceiverGivesUp);
  EXPECT_EQ(receiver_patience(60s), 60s);
}

}  // namespace
}  // namespace cepheus::mcast
