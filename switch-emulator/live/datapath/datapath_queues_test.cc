// Queues, pauses and priorities of a live fabric, on a time that the test moves: the same as in the
// simulator.
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "net/shapes.h"
#include "switch-emulator/live/datapath/datapath.h"
#include "switch-emulator/live/datapath/test_datapath.h"
#include "switch-emulator/live/status/readings.h"
#include "wire/mrp.h"
#include "wire/reduction.h"
#include "wire/test_bytes.h"

namespace cepheus::live {
namespace {

using namespace std::chrono_literals;
using fabric::BareClient;
using std::chrono::microseconds;

constexpr std::uint32_t kStreamPackets = 600;
constexpr std::size_t kPayload = 1024;

net::LinkConfig fast(bool lossless) {
  net::LinkConfig link;
  link.rate = wire::BitRate{1'000'000'000};
  link.delay = 20us;
  link.queue_bytes = 16 << 10;
  link.pfc.on = lossless;
  return link;
}

// h0, on a fast link, sends to h1 on a link of a tenth of the rate; over a trunk, if `switches`
// is 2.
net::Topology narrowing(bool lossless, std::size_t switches = 1) {
  net::Topology topology = switches == 1 ? net::Topology::star(2, fast(lossless))
                                         : net::leaf_spine(2, 1, 1, fast(lossless));
  topology.hosts[1].down.rate = wire::BitRate{100'000'000};
  return topology;
}

class Queues : public DatapathTest {
 protected:
  wire::Frame packet(std::uint32_t number, wire::Opcode opcode = wire::Opcode::kRcSendOnly) {
    return packet_between(0, 1, number, opcode);
  }
  wire::Frame packet_between(std::size_t from, std::size_t to, std::uint32_t number,
                             wire::Opcode opcode = wire::Opcode::kRcSendOnly) {
    wire::RoceHeaders headers;
    headers.bth.opcode = opcode;
    headers.bth.psn = wire::Psn(number);
    headers.ip.source = datapath->identity(from).address;
    headers.ip.destination = datapath->identity(to).address;
    wire::Frame frame;
    if (opcode == wire::Opcode::kCnp) {
      headers.emit(frame, 16);
      frame.set_inline_payload(std::array<std::uint8_t, 16>{});
    } else {
      headers.emit(frame, bytes_.size());
      frame.set_external_payload(bytes_, 0);
    }
    return frame;
  }
  static std::uint32_t psn_of(const fabric::Descriptor& got) {
    wire::Frame frame;
    EXPECT_TRUE(fabric::read_descriptor(got, frame));
    return wire::RoceHeaders::parse(frame)->bth.psn.value();
  }
  // Of the packets that h0 sends at full speed, the numbers of those that arrive, if the fabric
  // polls every `step`, and the receiver reads every `look`, at once by default.
  std::vector<std::uint32_t> stream(wire::Duration step, std::uint32_t packets = kStreamPackets,
                                    wire::Duration look = {}) {
    BareClient sender = attach(0), receiver = attach(1);
    std::vector<std::uint32_t> arrived;
    std::uint32_t sent = 0;
    wire::Instant next_look = now;
    for (const wire::Instant until = now + 5s; now < until && arrived.size() < packets;
         now += step) {
      while (sent < packets && sender.tx.free_entries() > 0) {
        const auto slot = sender.take_slot();
        if (!slot) break;
        sender.put(packet(sent++), *slot);
      }
      datapath->poll(now);
      if (now < next_look) continue;
      next_look = now + look;
      while (const auto got = receiver.take()) arrived.push_back(psn_of(*got));
    }
    poll_for(50ms);  // the rest: ends of pauses
    while (const auto got = receiver.take()) arrived.push_back(psn_of(*got));
    return arrived;
  }
  static wire::McstId reduction(std::size_t number) {
    return wire::McstId(198, 18, 0, static_cast<std::uint8_t>(number));
  }
  // Of `leader` and `other`. `bytes_` is what each contributes.
  void start_reduction(BareClient& client, std::size_t leader, std::size_t other,
                       std::uint16_t window, wire::McstId group = reduction(0)) {
    wire::MrpMessage message = wire::mrp_message(wire::MrpType::kRegister, group);
    message.header.flags = wire::MrpHeader::kLossEnds;
    message.reduction = wire::MrpReduction{wire::MrpReduction::kGather,
                                           static_cast<std::uint16_t>(bytes_.size()), window};
    for (const std::size_t host : {leader, other}) message.add({address(host), wire::Qpn(7)});
    send_mrp(client, leader, message);
    message = wire::mrp_message(wire::MrpType::kActivate, group);
    message.header.flags = 1;
    send_mrp(client, leader, message);
    poll_for(1ms);
    take_all(client);
  }
  void contribute(BareClient& client, std::size_t host, std::uint32_t unit,
                  wire::McstId group = reduction(0)) {
    wire::RoceHeaders headers;
    headers.ip = {.source = address(host), .destination = group};
    headers.bth.opcode = wire::Opcode::kRcSendOnlyImm;
    headers.bth.destination_qp = wire::kVirtualQpn;
    headers.bth.psn = wire::group_start_psn(group, 1) + static_cast<std::int32_t>(unit);
    headers.imm.value = wire::ReductionImm{1, 0, 1, static_cast<std::uint16_t>(unit)}.value();
    wire::Frame frame;
    headers.emit(frame, bytes_.size());
    frame.set_external_payload(bytes_, 0);
    client.put(frame, client.take_slot().value());
    datapath->wake(host);
  }
  // h0 sends to h2, which does not read, until the switch before `neighbour` is paused.
  void fill_until_paused(BareClient& sender, const std::string& neighbour) {
    const std::vector<std::uint8_t> small =
        std::exchange(bytes_, std::vector<std::uint8_t>(kPayload));
    for (std::uint32_t sent = 0; counted(neighbour)["pauses_received"] == 0; ++sent) {
      ASSERT_LT(sent, 2 * fabric::kFrameRing);
      sender.put(packet_between(0, 2, sent), *sender.take_slot());
      poll_for(10us);
    }
    bytes_ = small;
  }
  // The units of the results that have come.
  static std::vector<std::uint32_t> take_results(BareClient& client) {
    std::vector<std::uint32_t> results;
    while (const auto got = client.take()) {
      wire::Frame frame;
      EXPECT_TRUE(fabric::read_descriptor(*got, frame));
      const auto headers = wire::RoceHeaders::parse(frame);
      if (!headers || headers->bth.opcode != wire::Opcode::kRcSendOnlyImm) continue;
      results.push_back(headers->imm.value & 0xFFFF);
    }
    return results;
  }
  // Frames dropped anywhere, by any name.
  std::uint64_t dropped() {
    std::uint64_t sum = 0;
    for (const auto& [name, value] : counted()) {
      if (name.find("drop") != std::string::npos) sum += value;
    }
    return sum;
  }
  // Totals of all ports of all switches, by name; and those of one neighbour.
  std::map<std::string, std::uint64_t> counted(const std::string& neighbour = {}) {
    std::map<std::string, std::uint64_t> sums;
    for (const SwitchStatus& at :
         datapath->reporting().status([](const auto& slice) { slice(); })) {
      for (const PortStatus& port : at.ports) {
        if (!neighbour.empty() && port.name != neighbour) continue;
        for (const auto& each : readings<PortStatus>()) sums[each.full_name] += each.of(port);
        sums["link_dropped_queue_full"] += port.out.dropped_queue_full;
      }
    }
    return sums;
  }
  static std::vector<std::uint32_t> all(std::uint32_t packets = kStreamPackets) {
    std::vector<std::uint32_t> numbers(packets);
    std::iota(numbers.begin(), numbers.end(), 0u);
    return numbers;
  }

  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(kPayload, 0x33);
};

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

// They are the switch's own frames, and twice as many as other frames of its own may wait.
TEST_F(Queues, KeepAllResultsOfAReduction) {
  build(narrowing(true));
  constexpr std::uint16_t kUnits = 32;
  std::array clients{attach(0), attach(1)};
  start_reduction(clients[0], 0, 1, kUnits);
  take_all(clients[1]);
  for (const std::size_t host : {0, 1}) {
    for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
      contribute(clients[host], host, unit);
      poll_for(50us);
    }
  }
  poll_for(10ms);
  EXPECT_EQ(take_results(clients[1]), all(kUnits));
  EXPECT_GT(counted("h1")["queue_high_water_bytes"], 16u << 10);
  EXPECT_EQ(dropped(), 0u);
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

net::LinkConfig faster(bool lossless) {
  net::LinkConfig link = fast(lossless);
  link.rate = wire::BitRate{10'000'000'000};
  return link;
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

// Nothing says when the ring's pause will end, and the result is under way meanwhile.
TEST_F(Queues, HoldAResultForAMemberThatHasStoppedReading) {
  build(net::Topology::star(3, faster(true)));
  std::array members{attach(0), attach(1)};
  BareClient sender = attach(2);
  start_reduction(members[0], 0, 1, 8);
  for (std::uint32_t sent = 0; sent < LastHop::kPauseAt; ++sent) {
    sender.put(packet_between(2, 1, sent), *sender.take_slot());
    poll_for(10us);
  }
  for (const std::size_t host : {0, 1}) contribute(members[host], host, 0);
  poll_for(400ms);
  EXPECT_FALSE(take_results(members[0]).empty());
  EXPECT_EQ(take_results(members[1]), all(0)) << "its link is paused";
  poll_for(1ms);
  EXPECT_EQ(take_results(members[1]), all(1));
  EXPECT_EQ(dropped(), 0u);
}

// h1 reads nothing, and is in many groups. h0 and h2 have one of their own.
TEST_F(Queues, KeepSlotsForResultsWhereASlowMemberIsInManyGroups) {
  bytes_.resize(64);
  build(net::Topology::star(3, faster(true)));
  std::array members{attach(0), attach(1), attach(2)};
  constexpr std::size_t kGroups = 48;
  constexpr std::uint16_t kWindow = 256;
  start_reduction(members[2], 2, 0, kWindow, reduction(kGroups));
  for (std::size_t g = 0; g < kGroups; ++g) {
    start_reduction(members[0], 0, 1, kWindow, reduction(g));
    for (std::uint32_t unit = 0; unit < kWindow; ++unit) {
      for (const std::size_t host : {0, 1}) contribute(members[host], host, unit, reduction(g));
      datapath->poll(now += 1us);
      take_all(members[0]);
    }
  }
  EXPECT_GT(dropped(), 0u) << "more results than slots";
  for (const std::size_t host : {0, 2}) contribute(members[host], host, 0, reduction(kGroups));
  poll_for(1ms);
  EXPECT_EQ(take_results(members[2]), all(1));
}

// h0 sends to h2, which reads nothing, so the trunk to its switch stands still. These two are in many
// groups, and their results need no slots. h1 and h3 have a group of their own over that trunk.
TEST_F(Queues, KeepSpaceForOthersResultsOnATrunkThatStandsStill) {
  bytes_.resize(8);
  build(net::leaf_spine(2, 1, 2, faster(true)));
  std::array members{attach(0), attach(1), attach(2), attach(3)};
  constexpr std::size_t kGroups = 48;
  constexpr std::uint16_t kWindow = 256;
  for (std::size_t g = 0; g < kGroups; ++g) {
    start_reduction(members[0], 0, 2, kWindow, reduction(g));
  }
  start_reduction(members[1], 1, 3, kWindow, reduction(kGroups));
  fill_until_paused(members[0], "leaf1");
  for (std::size_t g = 0; g < kGroups; ++g) {
    for (std::uint32_t unit = 0; unit < kWindow; ++unit) {
      for (const std::size_t host : {0, 2}) contribute(members[host], host, unit, reduction(g));
      datapath->poll(now += 1us);
      take_all(members[0]);
    }
  }
  poll_for(1ms);
  take_all(members[0]);
  EXPECT_GT(counted("spine0")["drop_queue_share"], 0u) << "more results than may wait";
  for (const std::size_t host : {1, 3}) contribute(members[host], host, 0, reduction(kGroups));
  poll_for(1ms);
  EXPECT_EQ(take_results(members[1]), all(1));
  EXPECT_TRUE(take_results(members[3]).empty()) << "the trunk does not stand still";
  for (const wire::Instant until = now + 5ms; now < until;) {
    take_all(members[2]);
    poll_for(50us);
  }
  EXPECT_EQ(take_results(members[3]), all(1)) << "it has to be repeated";
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
