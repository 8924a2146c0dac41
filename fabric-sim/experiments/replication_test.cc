// Sender groups and their rivals, limited by links only.
#include "fabric-sim/experiments/replication.h"

#include <gtest/gtest.h>

#include "fabric-sim/experiments/sender_group.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kMiB = 1 << 20;
constexpr std::size_t kMessages = 4;

struct Times {
  double received_us = 0, acknowledged_us = 0;  // of the last message
};

Times time_of(ReplicationWay way, net::SenderGroups branching, const std::vector<std::size_t>& to) {
  net::Topology topology = net::leaf_spine(2, 1, 4, paper_link(100, 100ns));
  for (net::SwitchSpec& one : topology.switches) one.config.sender_groups = branching;
  Testbed testbed(topology, {.memory = 4 * kMiB});
  std::vector<std::unique_ptr<Replication>> all;
  all.push_back(make_replication(way, testbed, 0, to, 0));
  make_ready(testbed, all);
  std::size_t received = 0, acknowledged = 0;
  Times times;
  const Instant begin = testbed.simulator().now();
  all[0]->on_received([&](std::size_t, Instant now) {
    ++received;
    times.received_us = microseconds(now - begin);
  });
  all[0]->on_acknowledged([&](Instant now) {
    ++acknowledged;
    times.acknowledged_us = microseconds(now - begin);
  });
  for (std::size_t i = 0; i < kMessages; ++i) all[0]->send(4 * kMiB);
  testbed.run_until([&] { return acknowledged == kMessages; });
  EXPECT_EQ(received, kMessages * to.size()) << name_of(way);
  const Testbed::Totals totals = testbed.totals();
  EXPECT_EQ(totals.timeouts, 0u) << name_of(way);
  EXPECT_EQ(totals.retransmitted, 0u) << name_of(way);
  return times;
}

// Of all messages over one link.
double wire_us() {
  constexpr double kHeaders = (4096.0 + 58) / 4096;
  return kMessages * 4.0 * kMiB * kHeaders * 8 / 100e3;
}

TEST(Replication, BySenderGroupTakesTheTimeOfOneCopy) {
  for (const auto branching : {net::SenderGroups::kEverywhere, net::SenderGroups::kRacks}) {
    for (const std::vector<std::size_t>& to :
         {std::vector<std::size_t>{5}, {1, 2, 3}, {5, 6, 7}, {1, 2, 3, 4, 5, 6, 7}}) {
      const Times times = time_of(ReplicationWay::kMcRdma, branching, to);
      EXPECT_NEAR(times.received_us / wire_us(), 1, 0.03) << to.size() << " receivers";
      EXPECT_GT(times.acknowledged_us, times.received_us);
    }
  }
}

TEST(Replication, ByFanOutTakesTheTimeOfOneCopyPerReceiver) {
  const auto times = time_of(ReplicationWay::kFanOut, net::SenderGroups::kEverywhere, {1, 5, 6});
  EXPECT_NEAR(times.received_us / (3 * wire_us()), 1, 0.03);
}

// The last message passes two hosts whole after it has left the sender.
TEST(Replication, ByChainTakesTheTimeOfOneCopyAndOfAMessageForEachHostBetween) {
  const auto times =
      time_of(ReplicationWay::kChainReplication, net::SenderGroups::kEverywhere, {1, 5, 6});
  EXPECT_NEAR(times.received_us / (wire_us() * (kMessages + 2) / kMessages), 1, 0.03);
}

TEST(SenderGroup, WithoutBranchingSwitchesIsNotSetUp) {
  net::Topology topology = net::Topology::star(3, paper_link(100, 100ns));
  topology.switches.front().config.sender_groups = net::SenderGroups::kOff;
  Testbed testbed(topology, {});
  SenderGroup group(testbed, 0, {1, 2}, 0);
  group.begin();
  EXPECT_THROW(testbed.run_until([&] { return group.is_ready(); }), std::runtime_error);
}

}  // namespace
}  // namespace cepheus::sim
