#include "collectives/core/silence.h"

#include <gtest/gtest.h>

#include <utility>

namespace cepheus::coll {
namespace {

using namespace std::chrono_literals;

TEST(Silence, HoldsForATimeThatDoublesUntilASwitchAnswers) {
  Silence silence;
  EXPECT_FALSE(silence.holds(0s));
  silence.note(0s, 1s, 3, "no switch");
  EXPECT_TRUE(silence.holds(1499ms));
  EXPECT_FALSE(silence.holds(1500ms));
  EXPECT_EQ(silence.reason(), "no switch");
  silence.note(1500ms, 2500ms, 3, "no switch");
  EXPECT_TRUE(silence.holds(3499ms));
  EXPECT_FALSE(silence.holds(3500ms));
  silence.end(4s);
  EXPECT_FALSE(silence.holds(4s));
  silence.note(20s, 21s, 3, "no switch");
  EXPECT_FALSE(silence.holds(21500ms)) << "it served for long: the shortest time again";
}

TEST(Silence, CountsRegistrationsOfOneTimeOnce) {
  Silence silence;
  for (int each = 0; each < 10; ++each) silence.note(0s, 1s, 3, "no switch");
  EXPECT_FALSE(silence.holds(1500ms));
}

// The other member may be late.
TEST(Silence, OfAGroupOfTwoCountsTheSecondTime) {
  Silence silence;
  silence.note(0s, 1s, 2, "no switch");
  silence.note(0s, 1s, 2, "no switch");  // of the same time
  EXPECT_FALSE(silence.holds(1s));
  silence.note(1s, 2s, 2, "no switch");
  EXPECT_TRUE(silence.holds(2499ms));
  EXPECT_FALSE(silence.holds(2500ms)) << "the first one counts for nothing";
  silence.note(3s, 4s, 2, "no switch");
  EXPECT_TRUE(silence.holds(4999ms));
  silence.end(6s);
  silence.note(7s, 8s, 2, "no switch");
  EXPECT_FALSE(silence.holds(8s)) << "a switch has answered meanwhile";
}

// Two programs that were late, hours apart, are no sign of a fabric without a switch.
TEST(Silence, OfGroupsOfTwoCountsOnlyInARow) {
  for (const auto& [pause, counts] : {std::pair<Silence::Duration, bool>{Silence::kInARow, true},
                                      {Silence::kInARow + 1ns, false},
                                      {3h, false}}) {
    Silence silence;
    silence.note(0s, 1s, 2, "no switch");
    silence.note(1s + pause, 2s + pause, 2, "no switch");
    EXPECT_EQ(silence.holds(2s + pause), counts) << pause.count();
    silence.note(3s + pause, 4s + pause, 2, "no switch");
    EXPECT_TRUE(silence.holds(4s + pause)) << "it follows the one before";
  }
}

// ... nor behind a silence that was known hours ago.
TEST(Silence, OfAGroupOfTwoDoesNotFollowAnOldOne) {
  Silence silence;
  silence.note(0s, 1s, 3, "no switch");
  silence.note(2h, 2h + 1s, 2, "no switch");
  EXPECT_FALSE(silence.holds(2h + 1s));
}

// The time for which it holds is the shortest one again, too.
TEST(Silence, BeginsAnewAfterALongPause) {
  Silence silence;
  silence.note(0s, 1s, 3, "no switch");
  silence.note(2s, 3s, 3, "no switch");
  silence.note(5s, 6s, 3, "no switch");
  EXPECT_TRUE(silence.holds(7999ms));
  silence.note(3h, 3h + 1s, 3, "no switch");
  EXPECT_TRUE(silence.holds(3h + 1499ms));
  EXPECT_FALSE(silence.holds(3h + 1500ms));
}

// Registrations are held for up to a minute, and then the next one begins.
TEST(Silence, IsInARowAfterTheTimeForWhichItHolds) {
  for (const std::uint32_t members : {2, 3}) {
    Silence silence;
    silence.note(-2s, -1s, members, "no switch");
    Silence::Duration now = 0s;
    for (int each = 0; each < 12; ++each) {
      silence.note(now, now + 1s, members, "no switch");
      now += 1s;
      ASSERT_TRUE(silence.holds(now)) << each;
      while (silence.holds(now)) now += 500ms;
    }
    EXPECT_GT(now, 5min);
  }
}

TEST(Silence, OfALargerGroupCountsBesideThatOfAGroupOfTwo) {
  Silence silence;
  silence.note(0s, 1s, 2, "no switch");
  silence.note(0s, 2s, 3, "no switch");
  EXPECT_TRUE(silence.holds(2s));
}

}  // namespace
}  // namespace cepheus::coll
