// Queues, pauses and priorities of a live fabric, on a time that the test moves: the same as in the
// simulator.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "net/shapes.h"
#include "switch-emulator/live/datapath.h"
#include "switch-emulator/live/readings.h"
#include "switch-emulator/live/test_datapath.h"

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
