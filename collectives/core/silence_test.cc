#include "collectives/core/silence.h"

#include <gtest/gtest.h>

namespace cepheus::coll {
namespace {

using namespace std::chrono_literals;

TEST(Silence, HoldsForATimeThatDoublesUntilASwitchAnswers) {
  Silence silence;
  EXPECT_FALSE(silence.holds(0s));
  silence.note(0s, 1s, "no switch");
  EXPECT_TRUE(silence.holds(1499ms));
  EXPECT_FALSE(silence.holds(1500ms));
  EXPECT_EQ(silence.reason(), "no switch");
  silence.note(1500ms, 2500ms, "no switch");
  EXPECT_TRUE(silence.holds(3499ms));
  EXPECT_FALSE(silence.holds(3500ms));
  silence.end(4s);
  EXPECT_FALSE(silence.holds(4s));
  silence.note(20s, 21s, "no switch");
  EXPECT_FALSE(silence.holds(21500ms)) << "it served for long: the shortest time again";
}

TEST(Silence, CountsRegistrationsOfOneTimeOnce) {
  Silence silence;
  for (int each = 0; each < 10; ++each) silence.note(0s, 1s, "no switch");
  EXPECT_FALSE(silence.holds(1500ms));
}

}  // namespace
}  // namespace cepheus::coll
