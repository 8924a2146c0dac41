// Groups over lossless links: a pause because of one group loses no frame of another, and ends.
#include <gtest/gtest.h>

#include "fabric-sim/experiments/congested.h"
#include "fabric-sim/experiments/flows.h"
#include "net/buffer_plan.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

// Racks of four with two switches above, all links lossless. A switch has little more memory than
// its headroom; the last receiver's own link is ten times slower.
constexpr std::size_t kSlow = 7;

net::Topology lossless_racks(wire::Duration delay, bool group_halt = false) {
  net::Topology topology = net::leaf_spine(2, 2, 4, paper_link(100, delay));
  topology.mtu = 1024;
  topology.hosts[kSlow].down.rate = wire::BitRate{10'000'000'000};
  const auto make_lossless = [](net::LinkConfig& link) { link.pfc.on = true; };
  for (net::HostSpec& host : topology.hosts) {
    make_lossless(host.up);
    make_lossless(host.down);
  }
  for (net::TrunkSpec& trunk : topology.trunks) {
    make_lossless(trunk.ab);
    make_lossless(trunk.ba);
  }
  const auto plans = net::buffer_plans(topology);
  for (std::size_t s = 0; s < plans.size(); ++s) {
    topology.switches[s].config.buffer.bytes = plans[s].least + 50'000;
    topology.switches[s].config.buffer.group_halt = group_halt;
  }
  return topology;
}

struct Books {
  std::uint64_t pauses = 0, no_headroom = 0;
};
Books books_of(Testbed& testbed) {
  Books sums;
  for (const auto& node : testbed.network().switches()) {
    sums.pauses += node->pause_totals().pauses_sent;
    sums.no_headroom += node->pause_totals().dropped_headroom;
  }
  return sums;
}

// From both racks to the slow host and its neighbours, so that the sources compete.
const std::vector<FlowPlan> kGroups = {{"slow", 0, {1, 5, kSlow}, 0ms, 6ms},
                                       {"beside it", 2, {3, 5, 6}, 0ms, 6ms},
                                       {"back", 6, {0, 2, 4}, 0ms, 6ms},
                                       {"unicast", 4, {kSlow}, 0ms, 6ms}};

// Every pause ends: frames go up the tree and then down, so no pause waits for itself.
void expect_all_ended(Testbed& testbed, const FlowRates& rates) {
  for (std::size_t f = 0; f < kGroups.size(); ++f) {
    EXPECT_EQ(rates.mean(f, 25ms, 30ms), 0) << kGroups[f].name << " has ended";
  }
  for (const auto& node : testbed.network().switches()) {
    EXPECT_TRUE(node->books()->is_empty()) << node->name();
  }
}

std::uint64_t halts_of(Testbed& testbed) {
  std::uint64_t halts = 0;
  for (const auto& node : testbed.network().switches()) {
    halts += node->halt_totals(testbed.simulator().now()).halts;
  }
  return halts;
}

// The frames of a halted group wait at their ingress port, on that port's account.
TEST(Lossless, APausedOrHaltedGroupLosesNoFrameOfAnother) {
  for (const bool halts : {false, true}) {
    for (const wire::Duration delay : {0us, 1us, 20us}) {
      SCOPED_TRACE(milliseconds(delay));
      // A paused sender waits longer for an answer than the time-outs of other measurements.
      Testbed testbed(lossless_racks(delay, halts), {.ack_timeout = 20ms});
      const FlowRates rates = measure_flows(testbed, kGroups, 30ms, 1ms);
      EXPECT_GT(halts ? halts_of(testbed) : books_of(testbed).pauses, 0u) << "nothing was tested";
      EXPECT_EQ(books_of(testbed).no_headroom, 0u);
      const Testbed::Totals totals = testbed.totals();
      EXPECT_EQ(totals.queue_drops + totals.timeouts + totals.retransmitted, 0u);
      for (std::size_t f = 0; f < kGroups.size(); ++f) {
        EXPECT_GT(rates.mean(f, 2ms, 6ms), halts ? 0 : 1) << kGroups[f].name << " goes on";
      }
      expect_all_ended(testbed, rates);
      if (halts) continue;
      const double slow = rates.mean(0, 2ms, 6ms) + rates.mean(3, 2ms, 6ms);
      EXPECT_NEAR(slow, 10, 1) << "the slow link is full all the time";
    }
  }
}

TEST(Lossless, WithoutGroupHaltNoGroupIsHalted) {
  Testbed testbed(lossless_racks(1us), {});
  measure_flows(testbed, kGroups, 10ms, 1ms);
  EXPECT_GT(books_of(testbed).pauses, 0u);
  EXPECT_EQ(halts_of(testbed), 0u);
}

}  // namespace
}  // namespace cepheus::sim
