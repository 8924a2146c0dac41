// Flows that share links under congestion control.
#include "fabric-sim/experiments/flows.h"

#include <gtest/gtest.h>

#include "fabric-sim/experiments/congested.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

net::Topology star_of_four() { return net::Topology::star(4, paper_link()); }

TEST(Flows, HaveTheLinkForThemselvesWhileTheyRun) {
  Testbed testbed = congested_testbed(star_of_four(), kAllCnps, {});
  const std::vector<FlowPlan> flows = {{"multicast", 0, {1, 2}, 0ms, 4ms},
                                       {"unicast", 2, {3}, 2ms}};
  const FlowRates rates = measure_flows(testbed, flows, 6ms, 1ms);
  EXPECT_NEAR(rates.mean(0, 1ms, 4ms), 100, 2);
  EXPECT_NEAR(rates.mean(0, 5ms, 6ms), 0, 0.1);
  EXPECT_NEAR(rates.mean(1, 0ms, 2ms), 0, 0.1);
  EXPECT_NEAR(rates.mean(1, 3ms, 6ms), 100, 2);
  EXPECT_EQ(testbed.totals().marked, 0u);
  EXPECT_EQ(testbed.totals().timeouts, 0u);
}

TEST(Flows, ASenderGroupHasTheLinkForItself) {
  Testbed testbed = congested_testbed(star_of_four(), kAllCnps, {});
  const std::vector<FlowPlan> flows = {
      {.name = "multicast", .from = 0, .to = {1, 2, 3}, .is_sender_group = true}};
  EXPECT_NEAR(measure_flows(testbed, flows, 4ms, 1ms).mean(0, 1ms, 4ms), 100, 2);
}

// A turn of 1 MiB takes 85 us, and the change of the source some microseconds.
TEST(Flows, RootsThatTakeTurnsShareALink) {
  Testbed testbed = congested_testbed(star_of_four(), kAllCnps, {});
  const std::vector<FlowPlan> flows = {
      {.name = "multicast", .from = 0, .to = {1, 2, 3}, .turn = 1 << 20}};
  const double rate = measure_flows(testbed, flows, 10ms, 1ms).mean(0, 1ms, 10ms);
  EXPECT_GT(rate, 80);
  EXPECT_LE(rate, 101);
}

TEST(Flows, FairnessIsOneIfAllAreEqualAndOneNthIfOneHasAll) {
  EXPECT_DOUBLE_EQ(fairness({5, 5, 5}), 1);
  EXPECT_DOUBLE_EQ(fairness({0, 8, 0, 0}), 0.25);
}

// Two unicasts into one host: queues mark, senders slow down, no frame is lost, and the link is
// full.
TEST(Congested, SendersShareALinkWithoutLoss) {
  Testbed testbed = congested_testbed(star_of_four(), kAllCnps, {});
  const std::vector<FlowPlan> flows = {{"one", 0, {2}}, {"two", 1, {2}}};
  const FlowRates rates = measure_flows(testbed, flows, 60ms, 5ms);
  const double one = rates.mean(0, 40ms, 60ms), two = rates.mean(1, 40ms, 60ms);
  EXPECT_GT(one + two, 90);
  EXPECT_LT(one + two, 101);
  EXPECT_GT(fairness({one, two}), 0.9);
  const Testbed::Totals totals = testbed.totals();
  EXPECT_GT(totals.marked, 0u);
  EXPECT_GT(totals.notified, 0u);
  EXPECT_EQ(totals.queue_drops + totals.retransmitted + totals.timeouts, 0u);
}

TEST(Congested, WithoutControlNoSenderSlowsDown) {
  ExperimentOptions off;
  off.congestion = "off";
  Testbed testbed = congested_testbed(star_of_four(), kAllCnps, off);
  measure_flows(testbed, {{"one", 0, {2}}, {"two", 1, {2}}}, 2ms, 1ms);
  EXPECT_EQ(testbed.totals().marked, 0u);
}

// A multicast beside a unicast on each of three links: with all receivers' CNPs it would get less
// than with one receiver's.
TEST(Congested, TheDefaultFilterLeavesAMulticastItsShare) {
  const auto rate = [](const CnpFilter& filter) {
    Testbed testbed =
        congested_testbed(net::Topology::star(4, paper_link(40)), filter, {}, {}, 200'000);
    const std::vector<FlowPlan> flows = {
        {"multicast", 0, {1, 2, 3}}, {"a", 1, {2}}, {"b", 2, {3}}, {"c", 3, {1}}};
    return measure_flows(testbed, flows, 60ms, 5ms).mean(0, 30ms, 60ms);
  };
  const double all = rate(kAllCnps), filtered = rate(kWorstPath);
  EXPECT_LT(all, 15) << "theory: 40 / 4";
  EXPECT_GT(filtered, 18) << "theory: 40 / 2";
  EXPECT_LT(filtered, 24) << "the unicasts live, too";
}

}  // namespace
}  // namespace cepheus::sim
