// Queues, pauses and priorities of a live fabric. reduction_queues_test.cc has those of results.
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "switch-emulator/live/datapath/test_queues.h"

namespace cepheus::live {
namespace {

using std::chrono::microseconds;

TEST_F(Queues, DropFramesBeyondALossyLinksLimit) {
  net::Topology topology = narrowing(false);
  topology.hosts[1].down.ecn = {.on = true, .kmin = 9'000, .kmax = 12'000, .pmax = 0};
  build(topology);
  EXPECT_LT(stream(20us).size(), kStreamPackets);
  auto sums = counted();
  EXPECT_GT(sums["link_dropped_queue_full"] + sums["drop_queue_share"], 0u);
}

TEST_F(Queues, ALosslessLinkPausesItsHostAndLosesNothing) {
  build(narrowing(true));
  EXPECT_EQ(stream(20us), all());
  EXPECT_GT(counted("h0")["pauses_sent"], 0u);
  EXPECT_GT(counted("h1")["queue_high_water_bytes"], 16u << 10)
      << "more than lossy frames may wait";
  EXPECT_EQ(counted()["drop_headroom"], 0u);
  EXPECT_EQ(counted()["link_dropped_queue_full"], 0u);
}

// The switch at the narrow link pauses its neighbour, and the neighbour pauses the host.
TEST_F(Queues, PausesPropagateFromSwitchToSwitch) {
  build(narrowing(true, 2));
  EXPECT_EQ(stream(20us), all());
  EXPECT_GT(counted("spine0")["pauses_received"] + counted("leaf0")["pauses_received"], 0u);
  EXPECT_GT(counted("spine0")["paused_us"], 1000u);
  EXPECT_GT(counted("h0")["pauses_sent"], 0u);
  EXPECT_EQ(counted()["drop_headroom"], 0u);
}

// A process that lost its core polls late: the events meanwhile happen at their own times.
TEST_F(Queues, HoldThoughTheFabricPollsSeldom) {
  build(narrowing(true, 2));
  EXPECT_EQ(stream(7ms), all());
  EXPECT_EQ(counted()["drop_headroom"], 0u);
}

TEST_F(Queues, NeedTheirHeadroom) {
  net::Topology topology = narrowing(true, 2);
  for (net::TrunkSpec& trunk : topology.trunks) trunk.ab.pfc.headroom = trunk.ba.pfc.headroom = 1;
  build(topology);
  EXPECT_LT(stream(20us).size(), kStreamPackets);
  EXPECT_GT(counted()["drop_headroom"], 0u);
}

// Small packets use up a host's slots before the bytes of its share.
TEST_F(Queues, PauseAHostBeforeItsSlotsRunOut) {
  net::Topology topology = narrowing(true);
  for (net::HostSpec& host : topology.hosts) {
    host.up.rate = host.down.rate = wire::BitRate{25'000'000'000};
  }
  topology.hosts[1].down.rate = wire::BitRate{10'000'000'000};
  build(topology);
  bytes_.resize(64);
  constexpr std::uint32_t kMany = 20'000;
  EXPECT_EQ(stream(2us, kMany).size(), kMany);
  EXPECT_EQ(dropped(), 0u);
  EXPECT_GT(counted("h0")["pauses_sent"], 0u);
}

// A host's frames under way are a share of all. Beyond it, its ring waits.
TEST_F(Queues, WaitForFramesUnderWay) {
  net::Topology topology = net::Topology::star(2, fast(true));
  topology.hosts[0].up.delay = topology.hosts[0].down.delay = 10ms;
  topology.hosts[0].up.rate = wire::BitRate{40'000'000'000};
  build(topology);
  BareClient sender = attach(0), receiver = attach(1);
  wire::Frame small = packet(0);
  wire::RoceHeaders headers = *wire::RoceHeaders::parse(small);
  headers.bth.opcode = wire::Opcode::kRcSendOnly;
  headers.emit(small, 0);
  small.set_inline_payload({});
  std::uint32_t sent = 0, arrived = 0;
  for (const wire::Instant until = now + 80ms; now < until; now += 20us) {
    for (; sent < 2 * FlightAccount::kMost && sender.tx.free_entries() > 0; ++sent) {
      sender.put(small, 0);
    }
    datapath->poll(now);
    arrived += take_all(receiver);
  }
  for (int n = 0; n < 40 && arrived < sent; ++n) {
    poll_for(10ms);
    arrived += take_all(receiver);
  }
  EXPECT_EQ(arrived, sent);
  EXPECT_EQ(dropped(), 0u);
}

// No host of ours sends any. One from h1 would silence h0.
TEST_F(Queues, DropAHostsPauseFrames) {
  build(narrowing(true));
  BareClient sender = attach(0), receiver = attach(1);
  wire::Frame pause;
  net::emit_pause(pause, {}, true);
  receiver.put(pause, 0);
  poll_for(1ms);
  for (std::uint32_t n = 0; n < 8; ++n) sender.put(packet(n), *sender.take_slot());
  poll_for(10ms);
  EXPECT_EQ(take_all(receiver), 8u);
  EXPECT_EQ(counted("h1")["drop_host_pause"], 1u);
}

// Its ring has space for 2 ms of the link's rate.
TEST_F(Queues, WaitForAReceiverThatReadsSeldom) {
  build(net::Topology::star(2, faster(true)));
  constexpr std::uint32_t kMany = 6000;
  EXPECT_EQ(stream(2us, kMany, 10ms), all(kMany));
  EXPECT_EQ(dropped(), 0u);
  EXPECT_GT(counted("h1")["paused_us"], 1000u);
  EXPECT_GT(counted("h0")["pauses_sent"], 0u);
}

// The receiver reads a whole ring between two polls, and frames that waited for it follow.
TEST_F(Queues, ReturnTheSlotsOfFramesThatWaitedForARing) {
  net::LinkConfig link = faster(true);
  link.delay = 2ms;
  link.queue_bytes = 4 << 20;
  build(net::Topology::star(2, link));
  BareClient sender = attach(0), receiver = attach(1);
  constexpr std::uint32_t kMany = fabric::kFrameRing + 200;
  for (std::uint32_t sent = 0; sent < kMany; poll_for(50us)) {
    for (; sent < kMany && sender.tx.free_entries() > 0; ++sent) {
      sender.put(packet(sent), *sender.take_slot());
    }
  }
  poll_for(10ms);
  EXPECT_EQ(take_all(receiver), fabric::kFrameRing);
  poll_for(1ms);
  EXPECT_EQ(take_all(receiver), kMany - fabric::kFrameRing);
  poll_for(1ms);
  EXPECT_EQ(datapath->pools().in_use(0, 0), 0u);
}

// h1 is stopped, and h0 sends to it and to h2.
TEST_F(Queues, WaitForAStoppedReceiverForAWhileOnly) {
  build(net::Topology::star(3, faster(true)));
  BareClient sender = attach(0), stopped = attach(1), receiver = attach(2);
  std::uint32_t sent = 0, arrived = 0;
  const auto run = [&](wire::Duration time) {
    for (const wire::Instant until = now + time; now < until; now += 100us) {
      for (; sender.tx.free_entries() > 0; ++sent) {
        const auto slot = sender.take_slot();
        if (!slot) break;
        sender.put(packet_between(0, sent % 100 == 0 ? 2 : 1, sent), *slot);
      }
      datapath->poll(now);
      arrived += take_all(receiver);
    }
  };
  run(100ms);
  EXPECT_EQ(dropped(), 0u);
  const std::uint32_t before = arrived;
  run(100ms);
  EXPECT_EQ(arrived, before) << "paused, too: that is the price of lossless links";
  run(1s);
  EXPECT_GT(arrived, before + 100);
  EXPECT_GT(dropped(), 0u);
  while (stopped.take()) {
  }
  run(1ms);
  const std::uint64_t until_then = dropped();
  for (int n = 0; n < 1000; ++n) {
    while (stopped.take()) {
    }
    run(100us);
  }
  EXPECT_EQ(dropped(), until_then) << "lossless again";
}

// More than the queues before the links hold.
TEST_F(Queues, TakeTheFramesOfAClientThatHasEnded) {
  for (const bool lossless : {true, false}) {
    net::LinkConfig link = fast(lossless);
    link.delay = 1ms;
    build(net::Topology::star(2, link));
    BareClient receiver = attach(1);
    {
      BareClient ending = attach(0);
      for (std::uint32_t n = 0; n < kStreamPackets; ++n) ending.put(packet(n), *ending.take_slot());
      datapath->detach(now, 0);
    }
    BareClient next = attach(0);
    next.put(packet(kStreamPackets), *next.take_slot());
    poll_for(50ms);
    std::vector<std::uint32_t> arrived;
    while (const auto got = receiver.take()) arrived.push_back(psn_of(*got));
    EXPECT_EQ(arrived, all(kStreamPackets + 1)) << lossless;
    EXPECT_EQ(dropped(), 0u);
  }
}

TEST_F(Queues, HoldNoMoreFramesOfEndedClientsThanARing) {
  net::LinkConfig slow = fast(true);
  slow.rate = wire::BitRate{1'000'000};
  build(net::Topology::star(2, slow));
  BareClient receiver = attach(1);
  std::uint32_t sent = 0;
  for (int client = 0; client < 3; ++client) {
    BareClient ending = attach(0);
    for (; ending.tx.free_entries() > 0; ++sent) ending.put(packet(sent), *ending.take_slot());
    datapath->detach(now, 0);
  }
  EXPECT_GE(counted("h0")["drop_left_over"], sent - fabric::kFrameRing - 32);
  EXPECT_LE(counted("h0")["drop_left_over"], sent - fabric::kFrameRing);
}

// Whatever rates, delays, sizes and habits: no frame of a lossless link is dropped by any name.
RC_GTEST_FIXTURE_PROP(Queues, LoseNothingOnLosslessLinks, ()) {
  const auto link = [] {
    net::LinkConfig any = fast(true);
    any.rate = wire::BitRate{*rc::gen::element(1ull, 10ull, 25ull) * 1'000'000'000};
    any.delay = std::chrono::microseconds(*rc::gen::element(0, 20, 500));
    any.queue_bytes = *rc::gen::element<wire::Bytes>(5'000, 16'000, 4 << 20);
    return any;
  };
  net::Topology topology = *rc::gen::arbitrary<bool>() ? net::leaf_spine(2, 1, 1, link())
                                                       : net::Topology::star(2, link());
  for (net::HostSpec& host : topology.hosts) {
    const net::LinkConfig own = link();
    host.up.rate = host.down.rate = own.rate;
    host.up.delay = host.down.delay = own.delay;
  }
  topology.hosts[1].down.rate.bits_per_second /= *rc::gen::element(1u, 3u);
  bytes_.resize(*rc::gen::element<std::size_t>(64, 512, 4096));
  build(topology);
  const std::uint32_t packets = *rc::gen::inRange(1u, 4000u);
  const auto step = std::chrono::microseconds(*rc::gen::element(3, 20, 1000));
  const auto look = std::chrono::milliseconds(*rc::gen::element(0, 1, 10));
  const bool is_whole = stream(step, packets, look) == all(packets);
  RC_ASSERT(is_whole);
  RC_ASSERT(dropped() == 0u);
}

// A link without a rate has no queue, and a pause's quanta have no duration on it.
TEST_F(Queues, IgnoreAPauseOfAHostOnALinkWithoutARate) {
  net::Topology topology = narrowing(false);
  topology.hosts[0].up.rate = topology.hosts[0].down.rate = {};
  topology.hosts[1].down.ecn = {.on = true, .kmin = 9'000, .kmax = 12'000, .pmax = 0};
  build(topology);
  BareClient sender = attach(0), receiver = attach(1);
  wire::Frame pause;
  net::emit_pause(pause, {}, true);
  sender.put(pause, 0);
  sender.put(packet(1), *sender.take_slot());
  poll_for(20ms);
  ASSERT_TRUE(receiver.take());
}

TEST_F(Queues, LetNotificationsPassData) {
  build(narrowing(true));
  BareClient sender = attach(0), receiver = attach(1);
  constexpr std::uint32_t kData = 12, kNotification = 99;
  for (std::uint32_t n = 0; n < kData; ++n) sender.put(packet(n), *sender.take_slot());
  sender.put(packet(kNotification, wire::Opcode::kCnp), 0);
  poll_for(20ms);
  std::vector<std::uint32_t> seen;
  while (const auto got = receiver.take()) seen.push_back(psn_of(*got));
  ASSERT_EQ(seen.size(), kData + 1);
  const auto at = std::find(seen.begin(), seen.end(), kNotification) - seen.begin();
  EXPECT_LT(at, 6) << testing::PrintToString(seen);
}

}  // namespace
}  // namespace cepheus::live
