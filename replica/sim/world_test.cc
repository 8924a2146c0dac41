// What is watched in a simulated world must be seen if it is wrong: each fault is planted by hand here.
#include "replica/sim/world.h"

#include <gtest/gtest.h>

namespace cepheus::replica::sim {
namespace {

using namespace std::chrono_literals;

class WorldTest : public testing::Test {
 protected:
  static VolumePlan plan(unsigned operations) {
    VolumePlan plan;
    plan.operations = operations;
    plan.fua_share = 1;
    return plan;
  }
  std::string failure(World& world) { return world.run().failure.value_or("none"); }
};

TEST_F(WorldTest, HoldsWhereNothingBefallsIt) {
  World world(plan(200), {}, 1, false);
  EXPECT_EQ(failure(world), "none");
}

// After the last reads, and before the last flush.
TEST_F(WorldTest, FindsReplicasThatAreAlikeAndWrong) {
  World world(plan(200), {}, 1, false);
  world.events.at(Instant{360ms}, [&] {
    for (const auto& replica : world.replicas) replica->set(3, 0);
  });
  const std::string found = failure(world);
  EXPECT_EQ(found.rfind("in the end block 3 holds write 0 of writer 0, though write ", 0), 0u)
      << found;
}

}  // namespace
}  // namespace cepheus::replica::sim
