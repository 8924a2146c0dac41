#include "support/locality/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/locality/machine_testing.h"

namespace cepheus::locality {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DevicesOfTwoNodes : public testing::Test {
 protected:
  DeviceChoice choose(const std::string& cores, std::vector<std::string> names) {
    return {machine_.topology(), cpus(cores).get(), names};
  }
  const Machine machine_ = two_nodes();
};

TEST_F(DevicesOfTwoNodes, AreTriedTheNearestFirst) {
  const std::vector<std::string> names = {"mlx5_0", "mlx5_1"};
  EXPECT_THAT(choose("0", names).order(), ElementsAre(0, 1));
  EXPECT_THAT(choose("1", names).order(), ElementsAre(1, 0));
  EXPECT_THAT(choose("3,5,7", names).order(), ElementsAre(1, 0));
  EXPECT_EQ(choose("1", names).why(1),
            "nearest: at NUMA node 1, process on NUMA node 1; mlx5_0 at NUMA node 0");
  EXPECT_EQ(choose("1", names).why(0),
            "nearest that serves: at NUMA node 0, process on NUMA node 1; mlx5_1 at NUMA node 1");
}

TEST_F(DevicesOfTwoNodes, AreNearWhereMostCoresAre) {
  const std::vector<std::string> names = {"mlx5_0", "mlx5_1"};
  EXPECT_THAT(choose("0,1,3", names).order(), ElementsAre(1, 0));
  EXPECT_THAT(choose("0,2,3", names).order(), ElementsAre(0, 1));
}

TEST_F(DevicesOfTwoNodes, KeepTheirOrderForAProcessThatMayRunEverywhere) {
  const DeviceChoice choice = choose("0-7", {"mlx5_1", "mlx5_0"});
  EXPECT_THAT(choice.order(), ElementsAre(0, 1));
  EXPECT_EQ(
      choice.why(0),
      "first of those with as many cores at its node: at NUMA node 1, process on NUMA nodes 0-1");
}

TEST_F(DevicesOfTwoNodes, WithoutAPlaceKeepTheirTurns) {
  const DeviceChoice choice = choose("1", {"cepheus0", "mlx5_0", "mlx5_9", "mlx5_1"});
  EXPECT_THAT(choice.order(), ElementsAre(0, 3, 2, 1));
  EXPECT_EQ(choice.why(0), "in the order of the list; it has no place near any cores");
  EXPECT_THAT(choice.places()[2].at, IsEmpty()) << "below all nodes: the firmware does not say";
  EXPECT_EQ(choose("1", {"cepheus0", "mlx5_0"}).why(1),
            "the only one with a place: at NUMA node 0, process on NUMA node 1");
}

TEST_F(DevicesOfTwoNodes, AreFarFromTheCoresOfOtherNodes) {
  const DeviceChoice choice = choose("0,1,3", {"mlx5_0", "mlx5_1"});
  EXPECT_EQ(choice.places()[0].far_cores, 2);
  EXPECT_EQ(choice.places()[1].far_cores, 1);
}

TEST(DevicesOfASyntheticMachine, HaveNoPlace) {
  const Machine machine = machine_of("HWLOC_SYNTHETIC", "numa:2 core:4 pu:2");
  const std::vector<std::string> names = {"mlx5_0", "mlx5_1"};
  const DeviceChoice choice(machine.topology(), cpus("8-15").get(), names);
  EXPECT_THAT(choice.order(), ElementsAre(0, 1));
  EXPECT_EQ(choice.cores_at(), "NUMA node 1");
}

}  // namespace
}  // namespace cepheus::locality
