// Replication through a live fabric: a group is registered by hand, and one sender reaches all.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/test_group.h"

namespace cepheus::live {
namespace {

// Host a, and b and c in another rack; lines for all links, both switches and host c.
net::Topology two_racks(const std::string& links = "", const std::string& switches = "",
                        const std::string& c = "") {
  const auto topology =
      net::Topology::from_toml("[link]\n" + links +
                               "\n"
                               "[[switch]]\nname = 'leaf0'\n" +
                               switches + "\n[[switch]]\nname = 'leaf1'\n" + switches + R"(
[[host]]
name = "a"
address = "10.0.0.1"
switch = "leaf0"
[[host]]
name = "b"
address = "10.0.0.2"
switch = "leaf1"
[[trunk]]
between = ["leaf0", "leaf1"]
[[host]]
name = "c"
address = "10.0.0.3"
switch = "leaf1"
)" + c + "\n");
  EXPECT_TRUE(topology) << topology.error().text;
  return *topology;
}

TEST(LiveGroup, ReachesEveryMemberByReferenceWithOneTransmission) {
  constexpr std::size_t kHosts = 4;
  constexpr std::uint32_t kPackets = 200;
  TestFabric fabric(net::Topology::star(kHosts));
  LiveGroup group(fabric, kHosts);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  const wire::Psn start = wire::group_start_psn(kGroup, kEpoch);
  for (std::uint32_t n = 0; n < kPackets; ++n) {
    send_packet(group.port(0), {.to = kGroup,
                                .qpn = wire::kVirtualQpn,
                                .psn = start + n,
                                .payload_bytes = 4096,
                                .fill = static_cast<std::uint8_t>(n)});
  }
  for (std::size_t host = 1; host < kHosts; ++host) {
    for (std::uint32_t n = 0; n < kPackets; ++n) {
      wire::Frame frame;
      ASSERT_TRUE(await_frame(group.port(host), frame));
      const auto headers = wire::RoceHeaders::parse(frame);
      ASSERT_TRUE(headers);
      EXPECT_EQ(headers->bth.psn, start + n);
      EXPECT_EQ(headers->bth.destination_qp, qpn_of(host));
      EXPECT_EQ(headers->ip.source, kGroup);
      EXPECT_EQ(headers->ip.destination, group.port(host).identity().address);
      EXPECT_EQ(frame.payload()[0], static_cast<std::uint8_t>(n));
      EXPECT_EQ(frame.payload()[4095], static_cast<std::uint8_t>(n));
      group.port(host).release();
    }
  }
  const auto ports = fabric.status().switches[0].ports;
  EXPECT_EQ(ports[0].rx.payload_bytes, kPackets * 4096u);
  for (std::size_t host = 1; host < kHosts; ++host) {
    EXPECT_EQ(ports[host].tx.payload_bytes, kPackets * 4096u);
    EXPECT_EQ(counter(ports[host], "copied_payloads"), 0u);
  }
}

// By default of its ring, and of a shorter queue before a link with a rate.
TEST(LiveGroup, AnnouncesWhatAHostTakes) {
  net::Topology topology = net::Topology::star(3);
  net::LinkConfig& slow = topology.hosts[2].down;
  slow.rate = wire::BitRate{1'000'000'000};
  slow.queue_bytes = 64 * net::largest_frame(topology.mtu);
  topology.hosts[1].down.rate = slow.rate;
  topology.hosts[1].down.queue_bytes = 1 << 30;
  TestFabric fabric(topology);
  LiveGroup group(fabric, 3);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  const auto paths = fabric.status().switches[0].groups.at(0).paths;
  ASSERT_EQ(paths.size(), 3u);
  for (const fabric::PathView& path : paths) {
    EXPECT_EQ(path.window, path.name == "h2" ? 64u / 2 : fabric::kRingWindow) << path.name;
  }
}

// 40 members: a REGISTER that does not fit into a frame, which the switch writes anew for every
// host.
TEST(LiveGroup, RegistersMoreMembersThanFitIntoAFrame) {
  constexpr std::size_t kHosts = 40;
  TestFabric fabric(net::Topology::star(kHosts));
  LiveGroup group(fabric, kHosts);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  const auto groups = fabric.status().switches[0].groups;
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].paths.size(), kHosts);
  EXPECT_TRUE(groups[0].active);
}

// c's link is slow, so leaf1 pauses the trunk, and leaf0 makes the group wait at a's port.
TEST(LiveGroup, WaitsAtItsIngressWhileOneOfItsPortsIsPaused) {
  TestFabric fabric(two_racks("rate = '1Gbps'\ndelay = '20us'\npfc = true", "group_halt = true",
                              "link = { rate = '10Mbps' }"));
  LiveGroup group(fabric, 3);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  constexpr std::uint32_t kPackets = 200;
  const wire::Psn start = wire::group_start_psn(kGroup, kEpoch);
  for (std::uint32_t n = 0; n < kPackets; ++n) {
    send_packet(group.port(0), {.to = kGroup,
                                .qpn = wire::kVirtualQpn,
                                .psn = start + n,
                                .payload_bytes = 1024,
                                .fill = static_cast<std::uint8_t>(n)});
  }
  for (const std::size_t host : {1u, 2u}) {
    for (std::uint32_t n = 0; n < kPackets; ++n) {
      wire::Frame frame;
      ASSERT_TRUE(await_frame(group.port(host), frame));
      const auto headers = wire::RoceHeaders::parse(frame);
      ASSERT_TRUE(headers);
      EXPECT_EQ(headers->bth.psn, start + n) << "in order, none lost";
      EXPECT_THAT(frame.payload(), testing::Each(static_cast<std::uint8_t>(n)));
      group.port(host).release();
    }
  }
  const auto status = fabric.status();
  const QueueReading& from_a = status.switches[0].ports[0].queue;
  EXPECT_GT(from_a.group_halts, 0u);
  EXPECT_GT(from_a.group_halted_us, 100u);
  for (const SwitchStatus& at : status.switches) {
    for (const PortStatus& port : at.ports) EXPECT_EQ(counter(port, "drop_headroom"), 0u);
  }
}

// A switch sees a cut host cable as it sees a cut trunk.
TEST(LiveGroup, NoticesACutMemberCable) {
  TestFabric fabric(net::Topology::star(3));
  LiveGroup group(fabric, 3);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  const nlohmann::json request = {{"ask", "link"}, {"link", "h2"}, {"up", false}};
  const auto cut = send_request(fabric.socket(), request);
  ASSERT_TRUE(cut) << cut.error().text;
  std::optional<wire::MrpMessage> report;
  do {  // confirmations may come first
    wire::Frame frame;
    ASSERT_TRUE(await_frame(group.port(0), frame));
    report = wire::MrpMessage::parse(frame.payload());
    group.port(0).release();
  } while (!report || report->header.type != MrpType::kReport);
  ASSERT_EQ(report->member_count, 1u);
  EXPECT_EQ(report->members[0].host, group.port(2).identity().address);
  EXPECT_EQ(report->members[0].flags & wire::kMemberDown, wire::kMemberDown);
}

}  // namespace
}  // namespace cepheus::live
