#include "collectives/core/backoff.h"

#include <gtest/gtest.h>

namespace cepheus::coll {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, DoublesWhileNothingLastsUpToALimit) {
  Backoff backoff;
  backoff.ended(0s);
  EXPECT_EQ(backoff.interval(), Backoff::kFirst);
  backoff.ended(1s);
  EXPECT_EQ(backoff.interval(), 2 * Backoff::kFirst);
  for (int i = 0; i < 20; ++i) backoff.ended(2s);
  EXPECT_EQ(backoff.interval(), Backoff::kLongest);
}

TEST(Backoff, StartsAnewAfterALongService) {
  Backoff backoff;
  for (int i = 0; i < 5; ++i) backoff.ended(1s);
  const auto before = backoff.interval();
  backoff.began(10s);
  backoff.ended(10s + 10 * before);
  EXPECT_EQ(backoff.interval(), Backoff::kFirst);
  backoff.began(200s);
  backoff.ended(201s);
  EXPECT_EQ(backoff.interval(), 2 * Backoff::kFirst);
}

TEST(Backoff, TurnsTimeIntoUnitsAtTheRateSeen) {
  EXPECT_EQ(Backoff::units_for(2s, 1000, 1s), 2000u);
  EXPECT_EQ(Backoff::units_for(2s, 1, 60s), Backoff::kFewest);
  EXPECT_EQ(Backoff::units_for(60s, 1'000'000, 1s), Backoff::kMost);
  EXPECT_EQ(Backoff::units_for(1s, 5, 0s), 50u) << "the shortest time that counts is 100 ms";
}

}  // namespace
}  // namespace cepheus::coll
