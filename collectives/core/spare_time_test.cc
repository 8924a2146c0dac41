#include "collectives/core/spare_time.h"

#include <gtest/gtest.h>

namespace cepheus::coll {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(SpareTime, FewBytesAreWaitedForAwake) {
  EXPECT_EQ(SpareTime::of(8, microseconds(0)), nanoseconds(0));
  EXPECT_EQ(SpareTime::of(8, microseconds(199)), nanoseconds(0));
  EXPECT_EQ(SpareTime::of(8, microseconds(200)), microseconds(25));
}

TEST(SpareTime, WhatTakesLongIsSleptOver) {
  constexpr std::size_t size = std::size_t{8} << 20;  // 16.8 ms at 500 MB/s
  EXPECT_EQ(SpareTime::of(size, milliseconds(16)), nanoseconds(0));
  EXPECT_EQ(SpareTime::of(size, milliseconds(17)), SpareTime::kSleep);
  EXPECT_EQ(SpareTime::of(0, std::chrono::hours(1)), SpareTime::kSleep);
}

TEST(SpareTime, ASleepIsASmallPartOfTheWait) {
  for (const std::size_t size : {std::size_t{8}, std::size_t{1} << 16, std::size_t{1} << 20}) {
    for (auto elapsed = microseconds(1); elapsed < milliseconds(10); elapsed += microseconds(7)) {
      EXPECT_LE(SpareTime::of(size, elapsed), nanoseconds(elapsed) / SpareTime::kParts);
    }
  }
}

}  // namespace
}  // namespace cepheus::coll
