// Lossless links on virtual time: switches pause senders before their buffers overflow.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "fabric-sim/core/network.h"
#include "fabric-sim/core/random.h"
#include "wire/roce.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

net::LinkConfig lossless(std::uint64_t gigabits, Duration delay) {
  net::LinkConfig link;
  link.rate = wire::BitRate{gigabits * 1'000'000'000};
  link.delay = delay;
  link.pfc.on = true;
  return link;
}

// Data of no queue pair.
wire::Frame packet(wire::Ipv4 from, wire::Ipv4 to, wire::Mac gateway, std::size_t payload) {
  wire::RoceHeaders headers;
  headers.ethernet.destination = gateway;
  headers.bth.opcode = wire::Opcode::kRcSendOnly;
  headers.ip.source = from;
  headers.ip.destination = to;
  wire::Frame frame;
  headers.emit(frame, payload);
  static const std::vector<std::uint8_t> kBytes(4096);
  frame.set_external_payload(std::span(kBytes).first(payload), wire::kNoBuffer);
  return frame;
}

class Fabric {
 public:
  explicit Fabric(const net::Topology& topology)
      : topology_(topology),
        network_(simulator_, topology, std::vector<rnic::NicConfig>(topology.hosts.size())) {}

  void send(std::size_t from, std::size_t to, int frames, std::size_t payload) {
    Host& host = network_.host(from);
    for (int i = 0; i < frames; ++i) {
      host.send_frame(packet(host.address(), network_.host(to).address(), host.gateway(), payload));
    }
  }
  void run() { EXPECT_EQ(simulator_.run(), Simulator::End::kIdle); }

  std::uint64_t arrived(std::size_t host) { return network_.host(host).frames_to_nic(); }
  struct Sums {
    std::uint64_t pauses = 0, no_headroom = 0, queue_full = 0, held = 0;
  };
  Sums sums() const {
    Sums s;
    for (std::size_t at = 0; at < topology_.switches.size(); ++at) {
      const net::IngressBooks* books = network_.switches()[at]->books();
      if (books == nullptr) continue;
      const std::size_t ports = network_.switches()[at]->engine().config().ports.size();
      for (std::size_t p = 0; p < ports; ++p) {
        const auto& c = books->counters(wire::PortId(static_cast<std::uint16_t>(p)));
        s.pauses += c.pauses_sent;
        s.no_headroom += c.dropped_headroom;
      }
      s.held += books->buffer().used() + books->open_entries();
    }
    for (const auto& cable : network_.cables()) {
      s.queue_full += cable->link_counters().dropped_queue_full;
    }
    return s;
  }
  Simulator& simulator() { return simulator_; }
  Network& network() { return network_; }

 private:
  const net::Topology topology_;
  Simulator simulator_{5'000'000};
  Network network_;
};

// Two senders at 10 Gb/s into one receiver: the switch holds its buffer's limit, and both wait.
net::Topology incast(wire::Bytes buffer) {
  net::Topology topology = net::Topology::star(3, lossless(10, 1us));
  topology.mtu = 1024;
  topology.hello = {};
  topology.switches[0].config.buffer.bytes = buffer;
  for (net::HostSpec& host : topology.hosts) host.down.queue_bytes = 10'000;
  return topology;
}

TEST(Pause, KeepsEveryFrameOfAnIncastThatFitsNoQueue) {
  Fabric fabric(incast(100'000));
  fabric.send(0, 2, 500, 1024);
  fabric.send(1, 2, 500, 1024);
  fabric.run();
  EXPECT_EQ(fabric.arrived(2), 1000u);
  const auto sums = fabric.sums();
  EXPECT_GT(sums.pauses, 10u);
  EXPECT_EQ(sums.no_headroom, 0u);
  EXPECT_EQ(sums.queue_full, 0u) << "queues' limits are for lossy links";
  EXPECT_EQ(sums.held, 0u) << "the buffer is empty at the end";
  // 1000 frames take 874 us; each sender is paused for half of the time.
  const Instant end = fabric.simulator().now();
  EXPECT_EQ(fabric.network().host(0).data_pause().pauses() +
                fabric.network().host(1).data_pause().pauses(),
            sums.pauses);
  const Duration silent = fabric.network().host(0).data_pause().time(end) +
                          fabric.network().host(1).data_pause().time(end);
  EXPECT_GT(silent, 600us);
  EXPECT_LT(silent, 1000us);
}

TEST(Pause, NeedsItsHeadroom) {
  net::Topology topology = incast(100'000);
  for (net::HostSpec& host : topology.hosts) host.up.pfc.headroom = 1'200;  // one frame
  Fabric fabric(topology);
  fabric.send(0, 2, 500, 1024);
  fabric.send(1, 2, 500, 1024);
  fabric.run();
  EXPECT_GT(fabric.sums().no_headroom, 0u);
  EXPECT_EQ(fabric.arrived(2) + fabric.sums().no_headroom, 1000u);
}

// h0 - s0 - s1 - h1: only the trunk from s0 to s1 is lossless. s0 has no lossless port itself, and
// waits when s1 pauses it.
TEST(Pause, IsObeyedByASwitchWithoutLosslessPorts) {
  net::LinkConfig link = lossless(10, 1us);
  link.pfc.on = false;
  net::Topology topology = net::Topology::star(2, link);
  topology.mtu = 1024;
  topology.hello = {};
  topology.switches.push_back({"s1", {}});
  topology.hosts[1].switch_index = 1;
  topology.hosts[1].down.rate = wire::BitRate{1'000'000'000};
  net::TrunkSpec trunk;
  trunk.b = 1;
  trunk.ab = trunk.ba = link;
  trunk.ab.pfc.on = true;
  topology.trunks.push_back(trunk);
  topology.switches[1].config.buffer.bytes = 100'000;
  topology.assign_link_seeds();
  Fabric fabric(topology);
  fabric.send(0, 1, 1000, 1024);
  fabric.run();
  EXPECT_GT(fabric.sums().pauses, 0u);
  EXPECT_EQ(fabric.sums().no_headroom, 0u);
  EXPECT_EQ(fabric.arrived(1), 1000u);
}

// For any rates, delays, sizes and buffer: no frame is lost, and none is left.
RC_GTEST_PROP(Pause, LosesNothingAtAnyRateAndDelay, (std::uint64_t seed)) {
  Random random(seed);
  constexpr std::uint64_t kGigabits[] = {1, 5, 10, 25, 100, 200};
  const auto any_link = [&] {
    return lossless(kGigabits[random.below(6)], random.between(Duration{0}, Duration{20us}));
  };
  net::Topology topology = net::Topology::star(random.between(3, 6));
  topology.mtu = 256u << random.below(5);
  topology.hello = {};
  const std::size_t switches = random.between(1, 3);
  for (std::size_t s = 1; s < switches; ++s) {
    topology.switches.push_back({"s" + std::to_string(s), {}});
    topology.trunks.push_back({random.below(s), s, any_link(), any_link()});  // in this order
  }
  for (net::HostSpec& host : topology.hosts) {
    host.switch_index = random.below(switches);
    host.up = any_link();
    host.down = any_link();
  }
  topology.assign_link_seeds();
  const auto plans = net::buffer_plans(topology);
  for (std::size_t s = 0; s < switches; ++s) {
    if (!plans[s].has_lossless_ports()) continue;
    topology.switches[s].config.buffer.bytes = plans[s].least + random.below(100'000);
    topology.switches[s].config.buffer.share = 1.0 / (1u << random.below(4));
  }
  Fabric fabric(topology);
  std::vector<std::uint64_t> expected(topology.hosts.size());
  for (std::size_t h = 1; h < topology.hosts.size(); ++h) {
    const std::size_t to = random.chance(0.8) ? 0 : random.below(h);
    const int frames = static_cast<int>(random.between(50, 400));
    fabric.send(h, to, frames, random.between(1, topology.mtu));
    expected[to] += static_cast<std::uint64_t>(frames);
  }
  fabric.run();
  const auto sums = fabric.sums();
  RC_ASSERT(sums.no_headroom == 0u);
  RC_ASSERT(sums.queue_full == 0u);
  RC_ASSERT(sums.held == 0u);
  for (std::size_t h = 0; h < expected.size(); ++h) RC_ASSERT(fabric.arrived(h) == expected[h]);
}

}  // namespace
}  // namespace cepheus::sim
