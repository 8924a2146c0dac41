#include "collectives/core/silence.h"

#include <gtest/gtest.h>

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

TEST(Silence, OfALargerGroupCountsBesideThatOfAGroupOfTwo) {
  Silence silence;
  silence.note(0s, 1s, 2, "no switch");
  silence.note(0s, 2s, 3, "no switch");
  EXPECT_TRUE(silence.holds(2s));
}

}  // namespace
}  // namespace cepheus::coll
