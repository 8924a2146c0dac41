#include "switch-emulator/engine/group/regions.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/group/mft.h"

namespace cepheus::fabric {
namespace {

using wire::MrpRegion;

constexpr PortId kPortA(3), kPortB(5);

TEST(Region, ContainsRangesThatEndWithinIt) {
  const Region region{~std::uint64_t{0} - 100, 100, 1, 1, kPortA};
  EXPECT_TRUE(region.holds(0, 100));
  EXPECT_TRUE(region.holds(100, 0));
  EXPECT_FALSE(region.holds(1, 100));
  EXPECT_FALSE(region.holds(101, 0));
  EXPECT_FALSE(region.holds(~std::uint64_t{0}, 1)) << "the sum wraps";
}

TEST(Regions, AreFoundByMemberAndNumber) {
  Regions regions;
  const std::vector<MrpRegion> of_b{{1, 11, 0x1000, 64}, {9, 19, 0x9000, 64}};
  const std::vector<MrpRegion> of_a{{9, 90, 0x5000, 32}};
  EXPECT_EQ(regions.publish(kPortB, 1, of_b), Regions::Taken::kYes);
  EXPECT_EQ(regions.publish(kPortA, 1, of_a), Regions::Taken::kYes);
  EXPECT_EQ(regions.find(kPortA, 9)->rkey, 90u);
  EXPECT_EQ(regions.find(kPortB, 9)->rkey, 19u);
  EXPECT_EQ(regions.find(kPortA, 1), nullptr);
  EXPECT_EQ(regions.find(kPortB, 0x10009), nullptr) << "numbers have 16 bits";
  EXPECT_EQ(regions.of(kPortB).size(), 2u);
}

TEST(Regions, AreThoseOfTheNewestPublication) {
  Regions regions;
  const std::vector<MrpRegion> old{{1, 11, 0x1000, 64}, {2, 12, 0x2000, 64}}, now{{2, 22, 0, 8}};
  regions.publish(kPortA, 0xFFFF, old);
  EXPECT_EQ(regions.publish(kPortA, 0, now), Regions::Taken::kYes) << "over the wrap";
  EXPECT_EQ(regions.find(kPortA, 1), nullptr) << "revoked";
  EXPECT_EQ(regions.find(kPortA, 2)->rkey, 22u);
  EXPECT_EQ(regions.publish(kPortA, 0, now), Regions::Taken::kAlready);
  EXPECT_EQ(regions.publish(kPortA, 0xFFFF, old), Regions::Taken::kTooOld);
  EXPECT_EQ(regions.find(kPortA, 1), nullptr) << "a late repeat brings nothing back";
}

// A path has twenty bytes in the table; a region is outside it.
TEST(Regions, TakeAFewBytesBesideTheTable) {
  Regions regions;
  const std::size_t none = regions.bytes();
  EXPECT_LE(none, 160u);
  const std::vector<MrpRegion> two{{1, 11, 0x1000, 64}, {2, 12, 0x2000, 64}};
  regions.publish(kPortA, 1, two);
  EXPECT_EQ(regions.bytes(), none + 4 + 2 * 24);
}

}  // namespace
}  // namespace cepheus::fabric
