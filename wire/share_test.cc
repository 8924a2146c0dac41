#include "wire/share.h"

#include <gtest/gtest.h>

namespace cepheus::wire {
namespace {

constexpr std::uint64_t kAll = 300;

// The share that a user gets of kAll while others hold `others`.
template <typename S>
std::uint64_t fill(S& share, std::uint64_t others = 0) {
  while (share.has_space(kAll - others - share.held())) share.add();
  return share.held();
}

TEST(Share, OfOneUserLeavesAThirdToOthers) {
  Share<std::uint32_t> flood, late;
  EXPECT_EQ(fill(flood), 200u);
  EXPECT_EQ(fill(late, 200), 67u);
}

TEST(Share, OfMultipleOneLeavesHalf) {
  Share<std::uint32_t, 1> share;
  EXPECT_EQ(fill(share), 150u);
}

TEST(Share, GrowsAgainAfterARelease) {
  Share<std::uint64_t> bytes;
  bytes.add(1'500);
  EXPECT_FALSE(bytes.has_space(750));
  bytes.remove(1);
  EXPECT_TRUE(bytes.has_space(750));
  EXPECT_FALSE(bytes.has_space(0));
}

TEST(DynamicThreshold, MayBeAFraction) { EXPECT_EQ(dynamic_threshold(1.0 / 8, 1'000), 125u); }

}  // namespace
}  // namespace cepheus::wire
