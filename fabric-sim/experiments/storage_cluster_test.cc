#include "fabric-sim/experiments/storage_cluster.h"

#include <gtest/gtest.h>

#include "net/shapes.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRequests = 2000;

struct Means {
  double first_quarter, second_quarter, second_half;
};

Means reads_at(double load) {
  net::Topology topology = net::fat_tree(6, paper_link(100, 500ns));
  for (net::SwitchSpec& one : topology.switches) {
    one.config.sender_groups = net::SenderGroups::kEverywhere;
  }
  const MessageSizes sizes = MessageSizes::alibaba_storage();
  Testbed testbed(topology,
                  {.max_qps = 1024, .ack_timeout = kNoTimeout, .memory = sizes.largest()});
  const StoragePlan plan{.groups_of_a_primary = 2, .load = load, .requests = kRequests};
  StorageCluster cluster(testbed, ReplicationWay::kMcRdma, plan, sizes, 1);
  cluster.run(testbed);
  return {cluster.mean_read(0, kRequests / 4), cluster.mean_read(kRequests / 4, kRequests / 2),
          cluster.mean_read(kRequests / 2, kRequests)};
}

// A storing host receives 1.5 times the load. Above two thirds its queue grows during the whole
// run, and so do the times of reads: a mean would depend on the run's length.
TEST(StorageCluster, ReadTimesGrowInOverload) {
  const Means overload = reads_at(1.5);
  EXPECT_GT(overload.second_quarter, 1.2 * overload.first_quarter);
  EXPECT_GT(overload.second_half, 1.2 * overload.second_quarter);
}

TEST(StorageCluster, ReadTimesAreStableBelowOverload) {
  const Means calm = reads_at(0.1);
  EXPECT_NEAR(calm.second_half / calm.second_quarter, 1, 0.5);
}

}  // namespace
}  // namespace cepheus::sim
