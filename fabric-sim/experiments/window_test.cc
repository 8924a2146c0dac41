// Sources that keep the announced window, with NICs that have none.
#include <gtest/gtest.h>

#include <deque>

#include "fabric-sim/experiments/multicast_group.h"
#include "fabric-sim/experiments/rivals.h"
#include "fabric-sim/experiments/unicast_run.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kMessage = 1 << 20, kMessages = 8;

// Hosts 1 and 2 are behind links of a fifteenth, and queues of a box.
net::Topology slow_receivers() {
  net::Topology topology = net::Topology::star(5, paper_link());
  for (const std::size_t slow : {1, 2}) {
    net::LinkConfig& down = topology.hosts[slow].down;
    down.rate = wire::BitRate{down.rate.bits_per_second / 15};
    down.queue_bytes = 280 << 10;
  }
  return topology;
}

double slow_us(std::uint64_t bytes) {
  return static_cast<double>(bytes) * (4096.0 + 58) / 4096 * 8 * 15 / 100e3;
}

class WithoutAWindowOfItsOwn : public testing::Test {
 protected:
  Testbed testbed_{
      slow_receivers(),
      {.ack_timeout = 67ms, .memory = kMessage, .profile = rnic::find_nic_profile("connectx")}};
};

TEST_F(WithoutAWindowOfItsOwn, ASourceKeepsTheQueueOfItsSlowestReceiver) {
  MulticastGroup group(testbed_, {0, 1, 2}, kFirstGroup, 1 << 12);
  EXPECT_EQ(group.window(), 33u) << "half of 67 frames";
  const Instant begin = testbed_.simulator().now();
  group.send_all(0, kMessage, kMessages);
  testbed_.run_until([&] { return group.is_done(); });
  const auto totals = testbed_.totals();
  EXPECT_EQ(totals.queue_drops, 0u);
  EXPECT_EQ(totals.retransmitted, 0u);
  EXPECT_LT(microseconds(group.completed_at() - begin), 1.05 * slow_us(kMessage * kMessages));
}

// Packets that the source sends, as a multiple of the needed ones, where copies are lost.
double sent_with_loss(bool window_after_loss) {
  net::Topology topology = net::Topology::star(4, paper_link());
  for (std::size_t i = 1; i < topology.hosts.size(); ++i) {
    net::LinkConfig& down = topology.hosts[i].down;
    down.rate = wire::BitRate{down.rate.bits_per_second / 3};
    down.queue_bytes = 4 << 20;
    down.loss = 1e-3;
  }
  topology.switches[0].config.rules.window_after_loss = window_after_loss;
  Testbed testbed(
      topology,
      {.ack_timeout = 67ms, .memory = kMessage, .profile = rnic::find_nic_profile("connectx")});
  MulticastGroup group(testbed, first_hosts(4), kFirstGroup, 1 << 12);
  group.send_all(0, kMessage, 4 * kMessages);
  testbed.run_until([&] { return group.is_done(); });
  return 1 +
         static_cast<double>(testbed.totals().retransmitted) * 4096 / (4.0 * kMessages * kMessage);
}

TEST(WindowAfterLoss, CostsLessThanTheData) {
  EXPECT_LT(sent_with_loss(true), 2);
  EXPECT_GT(sent_with_loss(false), 4);
}

TEST_F(WithoutAWindowOfItsOwn, TwoGroupsAndAUnicastShareOneSlowLink) {
  MulticastGroup first(testbed_, {0, 1, 2}, kFirstGroup, 1 << 12);
  MulticastGroup second(testbed_, {3, 1, 2}, wire::McstId(198, 18, 0, 2), 1 << 12);
  // One message after the other, as a program that waits for each.
  constexpr std::uint64_t kUnicast = 64 << 10;
  constexpr std::size_t kUnicasts = 24;
  std::deque<UnicastRun> unicasts;
  for (std::size_t n = 0; n < kUnicasts; ++n) {
    unicasts.emplace_back(testbed_, chain(2, kUnicast, 1), std::vector<std::size_t>{4, 1});
  }
  std::size_t started = 0;
  const auto unicasts_are_done = [&] {
    while (started < kUnicasts && (started == 0 || unicasts[started - 1].is_done())) {
      unicasts[started++].start();
    }
    return unicasts.back().is_done();
  };
  const Instant begin = testbed_.simulator().now();
  for (MulticastGroup* const group : {&first, &second}) {
    group->send_all(0, kMessage, kMessages);
  }
  testbed_.run_until([&] { return unicasts_are_done() && first.is_done() && second.is_done(); });
  const auto totals = testbed_.totals();
  EXPECT_EQ(first.window(), 16u) << "a quarter";
  EXPECT_EQ(second.window(), 16u);
  EXPECT_EQ(totals.timeouts, 0u);
  const double needed = 2.0 * kMessage * kMessages / 4096;
  EXPECT_LT(static_cast<double>(totals.retransmitted), 0.1 * needed);
  EXPECT_LT(microseconds(testbed_.simulator().now() - begin),
            1.5 * slow_us(2 * kMessage * kMessages + kUnicasts * kUnicast));
}

}  // namespace
}  // namespace cepheus::sim
