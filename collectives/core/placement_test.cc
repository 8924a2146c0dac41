#include "collectives/core/placement.h"

#include <gmock/gmock.h>

namespace cepheus::coll {
namespace {

using Shape = Placement::Shape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Identity on(std::uint64_t host) { return {host, 1, 0, ""}; }
Identity without_nic(std::uint64_t host) { return {host, 0, 0, "no RDMA device"}; }

TEST(Placement, IsFlatWhenEachRankHasAHost) {
  const Placement p = Placement::of({on(7), on(5), on(9)});
  EXPECT_EQ(p.shape, Shape::kFlat);
  EXPECT_THAT(p.leaders(), ElementsAre(0, 1, 2));
}

TEST(Placement, OfOneRankIsFlat) {
  EXPECT_EQ(Placement::of({on(7)}).shape, Shape::kFlat);
  EXPECT_EQ(Placement::of({on(7), on(7)}).shape, Shape::kOneHost);
}

TEST(Placement, NumbersHostsByTheirFirstRank) {
  const Placement p = Placement::of({on(9), on(5), on(5), on(9), on(1)});
  EXPECT_EQ(p.shape, Shape::kHosts);
  EXPECT_THAT(p.hosts, ElementsAre(ElementsAre(0, 3), ElementsAre(1, 2), ElementsAre(4)));
  EXPECT_EQ(p.host_of[3], 0);
  EXPECT_EQ(p.host_of[2], 1);
}

TEST(Placement, LetsTheFirstRankThatHasANicLead) {
  const Placement p = Placement::of({without_nic(1), without_nic(1), on(1), on(1), on(2)});
  EXPECT_EQ(p.shape, Shape::kHosts);
  EXPECT_THAT(p.hosts[0], ElementsAre(2, 0, 1, 3));
  EXPECT_THAT(p.leaders(), ElementsAre(2, 4));
}

TEST(Placement, NamesTheHostWithoutANic) {
  const Placement p = Placement::of({on(1), without_nic(2), without_nic(2)});
  EXPECT_EQ(p.shape, Shape::kNone);
  EXPECT_THAT(p.reason, HasSubstr("rank 1: no RDMA device"));
}

TEST(Placement, NeedsNoNicOnOneHost) {
  EXPECT_EQ(Placement::of({without_nic(3), without_nic(3)}).shape, Shape::kOneHost);
}

}  // namespace
}  // namespace cepheus::coll
