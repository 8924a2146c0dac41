#include "switch-emulator/engine/routes.h"

#include <gtest/gtest.h>

#include <array>

#include "switch-emulator/engine/test_network.h"
#include "wire/icrc.h"
#include "wire/roce.h"

namespace cepheus::fabric {
namespace {

wire::RoceHeaders unicast(const TestNetwork& net, std::size_t from, std::size_t to) {
  auto h = net.headers_from(from, wire::Opcode::kRcSendOnly, 0);
  h.ip.destination = TestNetwork::ip(to);
  h.bth.destination_qp = Qpn(0x99);
  return h;
}

TEST(Forwarding, ForwardsUnicastUnchangedExceptForItsHop) {
  auto net = make_pair_of_switches(false);
  net->inject(0, net->make_frame(0, unicast(*net, 0, 3), 200));
  ASSERT_EQ(net->frames(3).size(), 1u);
  const auto frame = Frame::from_bytes(net->frames(3)[0]);
  const auto h = wire::RoceHeaders::parse(*frame);
  EXPECT_TRUE(wire::check_icrc(*frame));
  EXPECT_EQ(h->ip.source, TestNetwork::ip(0));
  EXPECT_EQ(h->bth.destination_qp, Qpn(0x99));
  EXPECT_EQ(h->ip.ttl, 62);
  EXPECT_EQ(h->ethernet.destination, wire::mac_for(TestNetwork::ip(3)));
  EXPECT_EQ(net->count(Counter::kUnicastForwarded, 1), 1u);
}

TEST(Forwarding, CountsEachSwitchInTheTimeToLive) {
  auto net = make_pair_of_switches(false);
  for (const std::uint8_t ttl : {2, 3}) {
    auto h = unicast(*net, 0, 3);
    h.ip.ttl = ttl;
    net->inject(0, net->make_frame(0, h, 8));
  }
  EXPECT_EQ(net->inbox(3).size(), 1u);
  EXPECT_EQ(net->count(Counter::kDropTtl, 1), 1u);
}

TEST(Forwarding, DropsAddressesThatAreNotThePorts) {
  auto net = make_star(3);
  auto h = unicast(*net, 0, 2);
  h.ip.source = TestNetwork::ip(1);
  net->inject(0, net->make_frame(0, h, 8));
  auto group = net->headers_from(0, wire::Opcode::kRcSendOnly, 0);
  group.ip.source = TestNetwork::ip(1);
  net->inject(0, net->make_frame(0, group, 8));
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->count(Counter::kDropSpoofedSource), 2u);
}

TEST(Forwarding, NamesWhyItDrops) {
  auto net = make_star(3, false, [](SwitchConfig& c) { c.ports[2].mtu = 100; });
  auto h = unicast(*net, 0, 1);
  h.ip.destination = Ipv4(10, 9, 9, 9);
  net->inject(0, net->make_frame(0, h, 8));
  EXPECT_EQ(net->count(Counter::kDropNoRoute), 1u);
  h = unicast(*net, 0, 1);
  h.ip.ttl = 1;
  net->inject(0, net->make_frame(0, h, 8));
  EXPECT_EQ(net->count(Counter::kDropTtl), 1u);
  net->inject(0, net->make_frame(0, unicast(*net, 0, 2), 200));
  EXPECT_EQ(net->count(Counter::kDropTooLong), 1u);
  std::vector<std::uint8_t> arp(60, 0);
  arp[12] = 0x08;
  arp[13] = 0x06;
  net->inject_bytes(0, arp);
  EXPECT_EQ(net->count(Counter::kDropOther), 1u);
  net->data(0, 0);
  EXPECT_EQ(net->count(Counter::kDropUnknownGroup), 1u);
  EXPECT_EQ(net->inbox(1), Texts());
}

TEST(Forwarding, AvoidsPortsThatAreDown) {
  auto net = make_star(2, false);
  net->set_port(0, net->port_of(1), false);
  net->inject(0, net->make_frame(0, unicast(*net, 0, 1), 8));
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropNoRoute), 1u);
  net->set_port(0, net->port_of(1), true);
  net->inject(0, net->make_frame(0, unicast(*net, 0, 1), 8));
  EXPECT_EQ(net->inbox(1).size(), 1u);
}

constexpr Ipv4 kAttachment(10, 255, 0, 2);

TEST(Routes, PutTheHostsOfOneSwitchIntoOneClass) {
  SwitchConfig config;
  config.ports.resize(3);
  for (auto& port : config.ports) port.kind = PortKind::kSwitch;
  config.ports[2].kind = PortKind::kHost;
  config.ports[2].host = Ipv4(10, 0, 0, 9);
  constexpr Ipv4 kOther(10, 255, 0, 3), kNowhere(10, 255, 0, 4);
  config.routes = {{kAttachment, {PortId(0), PortId(1)}}, {kOther, {PortId(0), PortId(1)}}};
  config.attachments =
      std::make_shared<net::Attachments>(net::Attachments{{Ipv4(10, 0, 0, 1), kAttachment},
                                                          {Ipv4(10, 0, 0, 2), kAttachment},
                                                          {Ipv4(10, 0, 0, 3), kNowhere},
                                                          {Ipv4(10, 0, 0, 5), kOther}});
  const Routes routes(config);
  EXPECT_EQ(routes.class_count(), 3u);
  EXPECT_NE(routes.find(Ipv4(10, 0, 0, 1)), routes.find(Ipv4(10, 0, 0, 5))) << "of another leaf";
  EXPECT_EQ(routes.find(Ipv4(10, 0, 0, 1)), routes.find(Ipv4(10, 0, 0, 2)));
  EXPECT_FALSE(routes.find(Ipv4(10, 0, 0, 3))) << "no way to its leaf";
  EXPECT_FALSE(routes.find(Ipv4(10, 0, 0, 4)));
  EXPECT_EQ(routes.next_hop(Ipv4(10, 0, 0, 1), 0, PortId(2)), PortId(0));
  EXPECT_EQ(routes.next_hop(Ipv4(10, 0, 0, 1), 1, PortId(2)), PortId(1));
  EXPECT_EQ(routes.next_hop(Ipv4(10, 0, 0, 1), 1, PortId(1)), PortId(0)) << "never back";
}

constexpr std::size_t kFlows = 1024;

// The ports that this switch chooses for flows with addresses that differ by `step`.
std::vector<std::size_t> flows_by_way(const wire::Mac& self, std::uint32_t step, std::size_t ways) {
  std::vector<std::size_t> flows(ways);
  for (std::uint32_t n = 0; n < kFlows; ++n) {
    wire::UdpDatagram datagram;
    datagram.ip.source = Ipv4(10, 0, 0, 1);
    datagram.ip.destination = Ipv4(Ipv4(10, 1, 0, 1).value() + n * step);
    Frame frame;
    datagram.emit(frame, {});
    ++flows[flow_hash(self, frame, datagram.ip) % ways];
  }
  return flows;
}

TEST(FlowHash, SpreadsFlowsWhateverBitOfTheirAddressesDiffers) {
  for (const std::uint32_t step : {1u, 2u, 4u, 256u}) {
    for (const std::size_t ways : {2, 3, 4}) {
      for (const std::size_t flows : flows_by_way(wire::mac_for(Ipv4(10, 255, 0, 1)), step, ways)) {
        EXPECT_NEAR(static_cast<double>(flows), kFlows / static_cast<double>(ways), 100)
            << ways << " ways, addresses " << step << " apart";
      }
    }
  }
}

// The next stage spreads the flows on one port of the first stage again.
TEST(FlowHash, DiffersBetweenSwitches) {
  const wire::Mac first = wire::mac_for(Ipv4(10, 255, 0, 1));
  const wire::Mac second = wire::mac_for(Ipv4(10, 255, 0, 2));
  std::array<std::size_t, 2> second_way{};
  for (std::uint32_t n = 0; n < kFlows; ++n) {
    wire::UdpDatagram datagram;
    datagram.ip.source = Ipv4(10, 0, 0, 1);
    datagram.ip.destination = Ipv4(Ipv4(10, 1, 0, 1).value() + n);
    Frame frame;
    datagram.emit(frame, {});
    if (flow_hash(first, frame, datagram.ip) % 2 != 0) continue;
    ++second_way[flow_hash(second, frame, datagram.ip) % 2];
  }
  for (const std::size_t flows : second_way) {
    EXPECT_NEAR(static_cast<double>(flows), kFlows / 4.0, 60);
  }
}

TEST(Routes, ShareTheFlowsOfADeadPortAmongTheOthers) {
  SwitchConfig config;
  config.ports.resize(4);
  for (auto& port : config.ports) port.kind = PortKind::kSwitch;
  config.routes = {{kAttachment, {PortId(0), PortId(1), PortId(2), PortId(3)}}};
  config.attachments =
      std::make_shared<net::Attachments>(net::Attachments{{Ipv4(10, 0, 0, 1), kAttachment}});
  Routes routes(config);
  routes.set_up(PortId(1), false);
  std::array<int, 4> flows{};
  for (std::uint32_t flow = 0; flow < 120; ++flow) {
    const auto port = routes.next_hop(Ipv4(10, 0, 0, 1), flow, PortId(9));
    ASSERT_TRUE(port);
    ++flows[port->value()];
  }
  EXPECT_EQ(flows, (std::array{40, 0, 40, 40}));
}

}  // namespace
}  // namespace cepheus::fabric
