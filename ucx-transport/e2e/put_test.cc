// rc_mcast's puts between real processes over a live fabric.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "libmcast/e2e/processes.h"

namespace cepheus::mcast::e2e {
namespace {

class Put : public testing::TestWithParam<const char*> {};

TEST_P(Put, ReachesAllMembersInItsOrder) {
  const Fabric fabric = Fabric::lossy(
      4, 0.005, std::string("[[switch]]\nname = \"s0\"\nsource_change = \"") + GetParam() + "\"\n");
  char directory[] = "/tmp/put_test.XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  std::vector<Process> ranks;
  for (int i = 0; i < 4; ++i) {
    ranks.emplace_back(
        std::vector<std::string>{PUT_EXAMPLE, RC_MCAST, std::to_string(i), "4", directory}, 1,
        on_host(fabric.socket(), i));
  }
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(60s), 0);
  EXPECT_GT(fabric.lost(), 0u) << "nothing was tested";
  std::filesystem::remove_all(directory);
}

INSTANTIATE_TEST_SUITE_P(All, Put, testing::Values("rebase", "host-sync"), [](const auto& how) {
  return how.param == std::string("rebase") ? "Rebase" : "HostSync";
});

}  // namespace
}  // namespace cepheus::mcast::e2e
