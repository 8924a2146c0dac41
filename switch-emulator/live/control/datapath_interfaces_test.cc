// Hosts behind network interfaces share slots: the limits of each.
#include <gtest/gtest.h>
#include <poll.h>

#include "switch-emulator/live/datapath/test_datapath.h"
#include "switch-emulator/live/status/test_readings.h"
#include "switch-emulator/ports/test_veth.h"
#include "wire/test_bytes.h"

namespace cepheus::live {
namespace {

using fabric::PortCounter;
using fabric::TestVeth;
using wire::Frame;
using wire::Ipv4;
using wire::McstId;
using wire::MrpType;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kMtu = 1024;
constexpr std::size_t kPayload = 512;  // more than a frame holds inline

// Hosts 0 to 2 are behind one interface. 0 leads groups with 1 as a member.
class HostsBehindAnInterface : public DatapathTest {
 protected:
  static constexpr std::size_t kLeader = 0, kNewcomer = 1, kBystander = 2;

  void SetUp() override {
    auto made = TestVeth::make(kMtu + 512);
    if (!made) GTEST_SKIP() << made.error().text;
    network = std::move(*made);
    ASSERT_TRUE(TestVeth::ip("address add 10.0.0.254/24 dev port"));
    net::Topology topology = net::Topology::star(3);
    topology.mtu = kMtu;
    topology.one_armed = "port";
    for (net::HostSpec& host : topology.hosts) {
      host.any_mac = true;
      TestVeth::ip("neigh replace " + host.address.to_string() + " lladdr " + kHosts.to_string() +
                   " nud permanent dev port");
    }
    build(topology);
    const auto opened = datapath->open_one_armed(now);
    ASSERT_TRUE(opened) << opened.error().text;
  }

  template <typename Headers>
  Headers from(std::size_t host, McstId group) const {
    Headers headers;
    headers.ethernet.source = kHosts;
    headers.ethernet.destination = datapath->one_armed()->next_hops().own_mac();
    headers.ip.source = address(host);
    headers.ip.destination = group;
    return headers;
  }
  void send_mrp(MrpType type, McstId group) {
    wire::MrpMessage message = wire::mrp_message(type, group);
    if (type == MrpType::kActivate) message.header.flags = 1;
    if (type == MrpType::kRegister) {
      for (const std::size_t host : {kLeader, kNewcomer})
        message.add({address(host), wire::Qpn(7)});
    }
    const auto bytes = wire::bytes_of(message);
    auto datagram = from<wire::UdpDatagram>(kLeader, group);
    datagram.udp.source_port = 40000;
    datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
    Frame frame;
    datagram.emit(frame, bytes);
    send(frame);
  }
  void send_data(std::size_t host, McstId group, std::uint32_t number, std::uint8_t tos = 0) {
    auto headers = from<wire::RoceHeaders>(host, group);
    headers.ip.tos = tos;
    headers.bth.opcode = wire::Opcode::kRcSendOnly;
    headers.bth.destination_qp = wire::kVirtualQpn;
    headers.bth.psn = wire::group_start_psn(group, 1) + static_cast<std::int32_t>(number);
    Frame frame;
    headers.emit(frame, kPayload);
    frame.set_external_payload(payload, wire::kNoBuffer);
    send(frame);
  }
  void send(const Frame& frame) { ASSERT_TRUE(network->send(wire::bytes_of(frame))); }
  // All sent frames are in the switch when a frame of no host has arrived.
  void poll_until_delivered() {
    const auto& counters = datapath->one_armed()->counters();
    const std::uint64_t before = counters[PortCounter::kDropUnknownSource];
    send_data(kNobody, group_number(0), 0);
    now += std::chrono::milliseconds(20);
    while (counters[PortCounter::kDropUnknownSource] == before) {
      datapath->wake_one_armed();
      if (datapath->poll(now)) continue;
      pollfd waiting{datapath->one_armed()->fd(), POLLIN, 0};
      ASSERT_GT(poll(&waiting, 1, 20'000), 0);
    }
    datapath->poll(now);
  }
  static McstId group_number(std::uint32_t n) { return McstId(McstId(198, 18, 0, 1).value() + n); }

  std::uint64_t counted_of(std::size_t host, std::string_view name) const {
    const auto status = datapath->reporting().status([](const auto& slice) { slice(); });
    return counter(status[0].ports[host], name);
  }

  void send_acknowledgement(std::size_t host, McstId group) {
    auto headers = from<wire::RoceHeaders>(host, group);
    headers.bth.opcode = wire::Opcode::kRcAcknowledge;
    headers.bth.destination_qp = wire::kVirtualQpn;
    headers.bth.psn = wire::group_start_psn(group, 1);
    Frame frame;
    headers.emit(frame, 0);
    send(frame);
  }
  // The leader sends to one receiver by a link that has stopped, more than all rings hold.
  void fill_rings(std::uint8_t tos) {
    constexpr std::uint32_t kPackets = 5000, kAtOnce = 500;
    send_mrp(MrpType::kRegister, group_number(0));
    send_mrp(MrpType::kActivate, group_number(0));
    ASSERT_NO_FATAL_FAILURE(poll_until_delivered());
    for (std::uint32_t packet = 0; packet < kPackets; ++packet) {
      send_data(kLeader, group_number(0), packet, tos);
      if (packet % kAtOnce == kAtOnce - 1) {
        ASSERT_NO_FATAL_FAILURE(poll_until_delivered());
      }
    }
  }

  static constexpr std::size_t kNobody = 99;
  static constexpr wire::Mac kHosts{{2, 0, 0, 0, 0, 1}};
  const Bytes payload = Bytes(kPayload, 0xAB);
  std::unique_ptr<TestVeth> network;
};

// Two hosts cooperate: one begins a turn that the other never acknowledges, and the other's packets
// wait at the gate, in enough groups to fill the slots of hosts behind interfaces.
TEST_F(HostsBehindAnInterface, LeaveSlotsToOthersWhateverTheyHaveWaitingAtGates) {
  const fabric::PoolGeometry& geometry = datapath->pools().geometry();
  const std::uint32_t most_held = net::SwitchConfig().max_held;
  const std::uint32_t groups = geometry.slots_per_area / most_held;
  for (std::uint32_t n = 0; n < groups; ++n) {
    send_mrp(MrpType::kRegister, group_number(n));
    send_mrp(MrpType::kActivate, group_number(n));
    send_data(kLeader, group_number(n), 0);
    for (std::uint32_t packet = 0; packet < most_held; ++packet) {
      send_data(kNewcomer, group_number(n), packet);
    }
    ASSERT_NO_FATAL_FAILURE(poll_until_delivered());
  }
  EXPECT_GT(counted_of(kNewcomer, "gate_held"), most_held);
  EXPECT_GT(counted_of(kNewcomer, "gate_rnr"), 0u);
  EXPECT_EQ(counted_of(kNewcomer, "drop_no_slot"), 0u);
  EXPECT_LE(datapath->pools().in_use(0, geometry.switch_area()), geometry.slots_per_area / 2);

  const std::uint64_t before = counted_of(kBystander, "rx_packets");
  for (std::uint32_t n = 0; n < most_held; ++n) send_data(kBystander, group_number(groups), n);
  poll_until_delivered();
  EXPECT_EQ(counted_of(kBystander, "rx_packets"), before + most_held);
  EXPECT_EQ(counted_of(kBystander, "drop_no_slot"), 0u);

  for (std::uint32_t n = 0; n < groups; ++n) send_mrp(MrpType::kUnregister, group_number(n));
  poll_until_delivered();
  EXPECT_EQ(datapath->pools().in_use(0, geometry.switch_area()), 0u);
}

// A link that is slower than its sources costs one loss a packet, not one a copy; and feedback,
// which ends the turn, goes on meanwhile.
TEST_F(HostsBehindAnInterface, LoseDataBeforeReplicationWhileTheLinkIsBusy) {
  if (!TestVeth::stop_link()) {
    GTEST_SKIP() << "no token bucket: apt-get install iproute2, modprobe sch_tbf";
  }
  fill_rings(0);
  EXPECT_EQ(counted_of(kNewcomer, "drop_egress_full"), 0u);
  EXPECT_GT(counted_of(kLeader, "drop_ingress_full"), 0u);
  EXPECT_EQ(datapath->one_armed()->counters()[PortCounter::kMarkedByFill], 0u);
  EXPECT_LE(datapath->deadline(), now + fabric::OneArmedInterface::kBetweenSends);

  const std::uint64_t taken = counted_of(kLeader, "rx_packets");
  send_acknowledgement(kNewcomer, group_number(0));
  ASSERT_NO_FATAL_FAILURE(poll_until_delivered());
  EXPECT_EQ(counted_of(kNewcomer, "rx_packets"), 1u);
  EXPECT_EQ(counted_of(kLeader, "rx_packets"), taken) << "data waits";

  ASSERT_TRUE(TestVeth::resume_link());
  const std::uint64_t all = taken + datapath->one_armed()->data_slots();
  for (int looks = 0; looks < 10'000 && counted_of(kLeader, "rx_packets") < all; ++looks) {
    now += std::chrono::milliseconds(1);
    datapath->poll(now);
  }
  EXPECT_GE(counted_of(kLeader, "rx_packets"), all);
  EXPECT_EQ(counted_of(kNewcomer, "drop_egress_full"), 0u);
}

TEST_F(HostsBehindAnInterface, AreMarkedWhileTheirCopiesWaitIfTheyHaveCongestionControl) {
  if (!TestVeth::stop_link()) {
    GTEST_SKIP() << "no token bucket: apt-get install iproute2, modprobe sch_tbf";
  }
  fill_rings(static_cast<std::uint8_t>(wire::Ecn::kEct0));
  const std::uint64_t copies = counted_of(kNewcomer, "tx_packets");
  const std::uint64_t marked = datapath->one_armed()->counters()[PortCounter::kMarkedByFill];
  EXPECT_GT(marked, copies / 2);
  EXPECT_LT(marked, copies) << "those before a ring was filling";
}

// Frames that have left the gate no longer count.
TEST_F(HostsBehindAnInterface, HaveTheirShareAgainWhenGatesOpen) {
  const fabric::PoolGeometry& geometry = datapath->pools().geometry();
  const std::uint32_t most_held = net::SwitchConfig().max_held;
  for (std::uint32_t n = 0; n < 2 * geometry.slots_per_area / most_held; ++n) {
    send_mrp(MrpType::kRegister, group_number(0));
    send_mrp(MrpType::kActivate, group_number(0));
    send_data(kLeader, group_number(0), 0);
    for (std::uint32_t packet = 0; packet < most_held; ++packet) {
      send_data(kNewcomer, group_number(0), packet);
    }
    ASSERT_NO_FATAL_FAILURE(
        poll_until_delivered());  // frames of different hosts have no common order
    send_mrp(MrpType::kUnregister, group_number(0));
    ASSERT_NO_FATAL_FAILURE(poll_until_delivered());
    now += net::SwitchConfig().rest;
    datapath->poll(now);
    ASSERT_EQ(counted_of(kNewcomer, "gate_held"), (n + 1) * most_held);
  }
  EXPECT_EQ(counted_of(kNewcomer, "gate_rnr"), 0u);
}

}  // namespace
}  // namespace cepheus::live
