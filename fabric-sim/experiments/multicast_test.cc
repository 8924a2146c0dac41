// Building blocks of experiments with groups.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fabric-sim/experiments/gleam_hpl.h"
#include "fabric-sim/experiments/loss_sweep.h"
#include "fabric-sim/experiments/multicast_group.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr double kHeaders = (4096.0 + 58) / 4096;

double wire_us(std::uint64_t bytes) { return static_cast<double>(bytes) * kHeaders * 8 / 100e3; }

TEST(Multicast, TakesTheTimeOfOneCopyForAnyNumberOfReceivers) {
  for (const std::size_t n : {2, 8, 16}) {
    Testbed testbed(net::fat_tree(4, paper_link(100, 100ns)), {.memory = 16 * kMiB});
    const MulticastTime time = time_of_multicast(testbed, first_hosts(n), 16 * kMiB);
    EXPECT_NEAR(microseconds(time.received) / wire_us(16 * kMiB), 1, 0.01) << n;
    EXPECT_GT(time.completed, time.received);
  }
}

// Each of n members sends its share: each gets all but its own, and links carry the whole once.
TEST(Multicast, MembersThatTakeTurnsKeepTheLinksBusy) {
  const std::size_t n = 8;
  Testbed testbed(net::fat_tree(4, paper_link(100, 100ns)), {.memory = 8 * kMiB});
  const HostGroups group{first_hosts(n)};
  const HplTimes times = time_of_gleam(testbed, group, group, 8 * kMiB);
  EXPECT_NEAR(microseconds(times.panel) / wire_us(8 * kMiB), 1, 0.02);
  EXPECT_NEAR(microseconds(times.swap) / wire_us(8 * kMiB), 1, 0.05);
  const Testbed::Totals totals = testbed.totals();
  EXPECT_EQ(totals.queue_drops, 0u);
  EXPECT_EQ(totals.timeouts, 0u);
  EXPECT_EQ(totals.retransmitted, 0u);
}

TEST(Multicast, OneMemberOfEachColumnCanSendAllAtOnce) {
  const Grid grid = grid_of(4);
  Testbed testbed(net::fat_tree(4, paper_link(100, 100ns)), {.memory = 8 * kMiB});
  const wire::Duration time = time_of_swap_from_one(testbed, grid.columns, 8 * kMiB);
  EXPECT_NEAR(microseconds(time) / wire_us(8 * kMiB), 1, 0.02);
}

TEST(Loss, AtCopiesIsOnEveryLinkOutOfASwitchAndOnNoOther) {
  net::Topology fabric = net::fat_tree(4, paper_link());
  lose(fabric, LossAt::kCopies, 0.5);
  for (const net::HostSpec& host : fabric.hosts) {
    EXPECT_EQ(host.up.loss, 0);
    EXPECT_EQ(host.down.loss, 0.5);
  }
  for (const net::TrunkSpec& trunk : fabric.trunks) {
    EXPECT_EQ(trunk.ab.loss, 0.5);
    EXPECT_EQ(trunk.ba.loss, 0.5);
  }
}

TEST(Loss, AtMiddleSwitchesIsOnLinksIntoSwitchesWithoutHosts) {
  net::Topology fabric = net::leaf_spine(2, 2, 2, paper_link());  // trunks lead from leaf to spine
  lose(fabric, LossAt::kMiddleSwitches, 0.5);
  for (const net::HostSpec& host : fabric.hosts) EXPECT_EQ(host.down.loss, 0);
  for (const net::TrunkSpec& trunk : fabric.trunks) {
    EXPECT_EQ(trunk.ab.loss, 0.5);
    EXPECT_EQ(trunk.ba.loss, 0);
  }
}

// A lost packet is sent again to all, so the time grows with the links of the tree.
TEST(Loss, TakesGoodputInProportionToTheLinksThatLose) {
  LossSweep sweep;
  sweep.fabric = net::fat_tree(4, paper_link());
  sweep.hosts = first_hosts(16);
  sweep.bytes = 64 * kMiB;
  sweep.rates = {1e-4};
  sweep.seeds = 5;
  Report report("loss", {});
  sweep_loss(
      sweep, "multicast",
      [&](Testbed& t) {
        return microseconds(time_of_multicast(t, sweep.hosts, sweep.bytes).received);
      },
      report);
  std::map<std::string, double> by_series;
  for (const Point& p : report.points()) by_series[p.series] = p.value;
  // 27 links out of switches carry data, and a round trip over 6 links has about 37 packets.
  EXPECT_NEAR(by_series["multicast, goodput"], 1 / (1 + 1e-4 * 27 * 37), 0.04);
  EXPECT_EQ(by_series["multicast, time-outs"], 0);
}

std::uint64_t time_outs_of_turns(bool has_requests) {
  std::uint64_t time_outs = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    net::Topology fabric = net::fat_tree(4, paper_link());
    lose(fabric, LossAt::kMiddleSwitches, 1e-2);
    for (net::SwitchSpec& spec : fabric.switches) spec.config.rules.request_again = has_requests;
    Testbed testbed(fabric, {.seed = seed, .memory = kMiB});
    const HostGroups group{first_hosts(16)};
    time_of_gleam(testbed, group, group, kMiB);
    time_outs += testbed.totals().timeouts;
  }
  return time_outs;
}

// No later packet reveals the loss of the last packet of a member's share. The first turns have
// no measured round trips.
TEST(Loss, OfLastPacketsCostsFewTimeOuts) {
  EXPECT_LT(3 * time_outs_of_turns(true), time_outs_of_turns(false));
}

std::uint64_t time_outs_of_messages(bool repeats_last_ack) {
  net::Topology fabric = net::Topology::star(3, paper_link());
  fabric.hosts[0].down.loss = 0.2;
  fabric.switches[0].config.rules.last_ack_again = repeats_last_ack;
  Testbed testbed(fabric, {.ack_timeout = 67ms});
  MulticastGroup group(testbed, first_hosts(3));
  for (int i = 0; i < 100; ++i) {
    group.send(0, 4096);
    testbed.run_until([&] { return group.is_done(); });
  }
  return testbed.totals().timeouts;
}

TEST(Loss, OfLastAcknowledgementsCostsFewTimeOuts) {
  EXPECT_LT(4 * time_outs_of_messages(true), time_outs_of_messages(false));
}

// Each turn has a packet from one leaf, and acknowledgements from fifteen.
std::uint64_t repeats_of_turns(bool repeats_last_ack) {
  std::uint64_t repeats = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    net::Topology fabric = net::leaf_spine(16, 1, 1, paper_link());
    lose(fabric, LossAt::kMiddleSwitches, 0.02);
    for (net::SwitchSpec& spec : fabric.switches) {
      spec.config.rules.last_ack_again = repeats_last_ack;
    }
    Testbed testbed(fabric, {.seed = seed});
    MulticastGroup group(testbed, first_hosts(16));
    for (int i = 0; i < 5; ++i) {
      group.take_turns(4096);
      testbed.run_until([&] { return group.is_done(); });
    }
    repeats += testbed.totals().retransmitted;
  }
  return repeats;
}

TEST(Loss, OfLastAcknowledgementsBetweenSwitchesCostsFewRepeats) {
  EXPECT_LT(4 * repeats_of_turns(true), repeats_of_turns(false));
}

TEST(Hosts, AtRandomAreDifferentOnesAndTheSameForASeed) {
  const auto hosts = random_hosts(50, 60, 7);
  EXPECT_EQ(hosts, random_hosts(50, 60, 7));
  EXPECT_NE(hosts, random_hosts(50, 60, 8));
  EXPECT_EQ(std::set<std::size_t>(hosts.begin(), hosts.end()).size(), 50u);
}

}  // namespace
}  // namespace cepheus::sim
