// Counted rules against MC-RDMA's closed forms (V-B).
#include "fabric-sim/experiments/replication_rules.h"

#include <gtest/gtest.h>

namespace cepheus::sim {
namespace {

constexpr std::uint64_t kHosts = 16;

TEST(ReplicationRules, AreThePapersExactly) {
  for (std::uint64_t n = 1; n <= 3; ++n) {
    const Racks racks(n, kHosts);
    for (std::size_t rack = 0; rack < n; ++rack) {
      const RackRules rules = racks.count(rack, true);
      EXPECT_EQ(rules.one_rack, 1920 * n) << n << " racks, rack " << rack;
      EXPECT_EQ(rules.two_racks, 2048 * n * (n - 1)) << n << " racks, rack " << rack;
    }
  }
}

// Two of 15 other hosts of the sender's rack, and one of 15 with one of another rack.
TEST(ReplicationRules, AreFewerIfNoReplicaIsAtTheSendersHost) {
  for (std::uint64_t n = 1; n <= 3; ++n) {
    const RackRules rules = Racks(n, kHosts).count(0, false);
    EXPECT_EQ(rules.one_rack, 1920 * n - kHosts * 15) << n << " racks";
    EXPECT_EQ(rules.two_racks, 2048 * n * (n - 1) - kHosts * kHosts * (n - 1)) << n << " racks";
  }
}

TEST(ReplicationRules, OfTwoRacksAreAHostsGroupsIfItHasFew) {
  const RackRules rules = Racks(4, kHosts).count(0, true, 100);
  EXPECT_EQ(rules.one_rack, 1920u * 4);
  EXPECT_EQ(rules.two_racks, 1'600u);
}

}  // namespace
}  // namespace cepheus::sim
