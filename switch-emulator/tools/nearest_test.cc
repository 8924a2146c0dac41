#include "switch-emulator/tools/nearest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/locality/machine_testing.h"

namespace cepheus::tools {
namespace {

TEST(Nearest, ListsDevicesInTheOrderToTry) {
  const auto found = nearest_json(locality::two_nodes(), {"mlx5_0", "cepheus0"});
  EXPECT_EQ(found["cores_at"], "NUMA nodes 0-1");
  EXPECT_EQ(found["devices"][0]["name"], "mlx5_0");
  EXPECT_EQ(found["devices"][0]["at"], "NUMA node 0");
  EXPECT_EQ(found["devices"][1]["at"], "");
  EXPECT_EQ(nearest_text(found),
            "mlx5_0: the only one with a place: at NUMA node 0, process on NUMA nodes 0-1\n"
            "cepheus0: in the order of the list; it has no place near any cores\n");
}

}  // namespace
}  // namespace cepheus::tools
