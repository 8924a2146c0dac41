// The sources of a fabric's status, without a datapath.
#include "switch-emulator/live/datapath/reporting.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>

#include "net/shapes.h"
#include "switch-emulator/engine/test_payloads.h"
#include "wire/clock.h"
#include "wire/roce.h"

namespace cepheus::live {
namespace {

// The port of an attached host.
class HeldPort : public fabric::AccessPort {
 public:
  explicit HeldPort(fabric::FlushList& list) : AccessPort(list) {}
  bool is_open() const override { return true; }
  void close() override {}
  bool receive(wire::Frame& /*frame*/) override { return false; }
  bool deliver(const wire::Frame& /*frame*/, fabric::SenderNo /*sender*/,
               wire::Instant /*now*/) override {
    return false;
  }
  void flush() override {}
  bool arm() override { return true; }
  void reclaim() override {}
  std::uint32_t unread() const override { return 0; }
  std::uint8_t fill() const override { return 0; }
  std::optional<fabric::PortCounter> offence() const override { return std::nullopt; }
};

// A switch with a counting object of each kind for each of its ports.
class ReportingTest : public testing::Test {
 protected:
  void build(const net::Topology& topology) {
    engine = std::make_unique<fabric::Switch>(topology.plan()->configs.at(0), payloads);
    const std::size_t ports = engine->config().ports.size();
    links.resize(2 * ports);
    traffic.resize(2 * ports);
    drops.resize(ports);
    source.engine = engine.get();
    for (std::size_t p = 0; p < ports; ++p) {
      source.ports.push_back({.in = &links[2 * p],
                              .out = &links[2 * p + 1],
                              .rx = &traffic[2 * p],
                              .tx = &traffic[2 * p + 1],
                              .drops = &drops[p]});
    }
  }
  SwitchStatus status() const {
    return Reporting({source}).status([](const auto& slice) { slice(); }).at(0);
  }

  fabric::TestPayloads payloads;
  std::unique_ptr<fabric::Switch> engine;
  std::vector<net::Link> links;
  std::vector<Traffic> traffic;
  std::vector<LinkSideDrops> drops;
  Reporting::SwitchSource source;
};

TEST_F(ReportingTest, CopiesTheCountersOfEachObjectOfAPort) {
  build(net::Topology::star(2));
  fabric::FlushList list;
  HeldPort held(list);
  held.count(fabric::PortCounter::kDoorbells, 5);
  source.ports[1].access = &held;
  source.ports[1].client_pid = [] { return 42; };
  source.ports[1].queue = [] { return QueueReading{.pauses_sent = 6}; };
  links[2].refuse(100);
  links[3].set_up(false);
  traffic[2].payload_bytes = 7;
  traffic[3].frames = 8;
  drops[1].no_headroom = 9;
  const PortStatus port = status().ports.at(1);
  EXPECT_EQ(port.name, "h1");
  EXPECT_EQ(port.address, wire::Ipv4(10, 0, 0, 2));
  EXPECT_TRUE(port.attached);
  EXPECT_EQ(port.client_pid, 42);
  EXPECT_EQ(port.access[fabric::PortCounter::kDoorbells], 5u);
  EXPECT_EQ(port.queue.pauses_sent, 6u);
  EXPECT_EQ(port.in.dropped_queue_full, 1u);
  EXPECT_TRUE(port.in_up);
  EXPECT_FALSE(port.out_up);
  EXPECT_EQ(port.rx.payload_bytes, 7u);
  EXPECT_EQ(port.tx.frames, 8u);
  EXPECT_EQ(port.drops.no_headroom, 9u);
}

TEST_F(ReportingTest, CopiesTheEnginesCountersByPortAndTogether) {
  build(net::Topology::star(2));
  wire::UdpDatagram datagram;
  datagram.ip.source = wire::Ipv4(10, 0, 0, 1);
  datagram.ip.destination = wire::Ipv4(10, 0, 9, 9);
  wire::Frame frame;
  datagram.emit(frame, std::array<std::uint8_t, 4>{});
  fabric::SwitchOutput output;
  engine->on_packet(wire::Instant{}, wire::PortId(0), frame, output);
  const SwitchStatus now = status();
  EXPECT_EQ(now.engine[fabric::Counter::kRxPackets], 1u);
  EXPECT_EQ(now.ports[0].engine[fabric::Counter::kRxPackets], 1u);
  EXPECT_EQ(now.ports[1].engine[fabric::Counter::kRxPackets], 0u);
}

TEST_F(ReportingTest, CallsATrunkDarkUnlessItIsCut) {
  build(net::leaf_spine(1, 1, 1));
  const auto trunk = [this] {
    for (const PortStatus& port : status().ports) {
      if (port.kind == net::PortKind::kSwitch) return port;
    }
    throw std::out_of_range("no trunk");
  };
  EXPECT_FALSE(trunk().dark);
  fabric::SwitchOutput output;
  engine->on_port_down(wire::Instant{}, trunk().id, output);
  EXPECT_TRUE(trunk().dark);
  for (net::Link& link : links) link.set_up(false);
  EXPECT_FALSE(trunk().dark);
}

// A packet that arrives while the switches are read is not late.
TEST_F(ReportingTest, HasTheTimeBeforeTheFirstSlice) {
  build(net::Topology::star(2));
  std::optional<wire::Instant> first;
  const FabricStatus all = Reporting({source}).timed_status([&](const auto& slice) {
    first = first.value_or(wire::monotonic_now());
    slice();
  });
  EXPECT_LE(all.now, *first);
  EXPECT_EQ(all.switches.size(), 1u);
}

TEST_F(ReportingTest, CopiesFewPortsInASlice) {
  build(net::Topology::star(512));
  std::size_t slices = 0;
  const auto all = Reporting({source}).status([&](const auto& slice) {
    slice();
    ++slices;
  });
  EXPECT_EQ(all.at(0).ports.size(), 512u);
  EXPECT_EQ(all[0].ports[511].name, "h511");
  EXPECT_GE(slices, 512u / 16);
}

}  // namespace
}  // namespace cepheus::live
