// Broken and hostile peers on a live fabric: each case has its counter, and groups go on.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "switch-emulator/live/test_group.h"
#include "switch-emulator/ports/test_waiting_crowd.h"
#include "wire/test_bytes.h"

namespace cepheus::live {
namespace {

// A frame without any correction, from the source in its headers.
void send_raw(fabric::HostPort& port, const wire::Frame& original) {
  wire::Frame frame = original;
  ASSERT_TRUE(await_space(port, 0));
  port.send(frame);
  port.flush();
}

wire::Frame mrp_frame(fabric::HostPort& port, wire::Ipv4 from, wire::Ipv4 to,
                      std::span<const std::uint8_t> bytes) {
  wire::UdpDatagram datagram;
  datagram.ethernet.source = port.identity().mac;
  datagram.ethernet.destination = port.identity().gateway;
  datagram.ip.source = from;
  datagram.ip.destination = to;
  datagram.udp.source_port = 40000;
  datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
  wire::Frame frame;
  datagram.emit(frame, bytes);
  if (frame.external != nullptr) {
    const auto slot = port.tx_buffer();
    std::copy(bytes.begin(), bytes.end(), slot.begin());
    frame.set_external_payload(slot.first(bytes.size()), wire::kNoBuffer);
  }
  return frame;
}

// MRP of `type` about host 1, with any source and destination.
wire::Frame mrp_frame(fabric::HostPort& port, wire::Ipv4 from, wire::Ipv4 to, MrpType type,
                      std::uint16_t epoch) {
  auto message = message_of(type);
  message.header.epoch = epoch;
  message.add({wire::Ipv4(10, 0, 0, 2), qpn_of(1), wire::kMemberDown});
  return mrp_frame(port, from, to, wire::bytes_of(message));
}

// The same bytes with a false length of the headers.
wire::Frame shifted(const wire::Frame& original, int bytes) {
  wire::Frame frame = original;
  frame.header_len = static_cast<std::uint16_t>(frame.header_len + bytes);
  frame.payload_len = static_cast<std::uint16_t>(frame.payload_len - bytes);
  return frame;
}

wire::Frame group_frame(const fabric::HostPort& port, wire::Ipv4 from, wire::Opcode opcode,
                        wire::Psn psn) {
  wire::RoceHeaders headers;
  headers.ethernet.source = port.identity().mac;
  headers.ethernet.destination = port.identity().gateway;
  headers.ip.source = from;
  headers.ip.destination = kGroup;
  headers.bth.opcode = opcode;
  headers.bth.destination_qp = wire::kVirtualQpn;
  headers.bth.psn = psn;
  wire::Frame frame;
  headers.emit(frame, 0);
  return frame;
}

wire::Ipv4 address_of(const fabric::HostPort& port) { return port.identity().address; }

// The switch's counters of the attacker's port.
std::uint64_t counter_of(const FabricStatus& status, std::string_view name) {
  return counter(status.switches[0].ports[3], name);
}

struct Attack {
  const char* counter;
  wire::Frame frame;
};

// Of a host that is no member.
std::vector<Attack> attacks(fabric::HostPort& attacker, const fabric::HostPort& victim) {
  const wire::Ipv4 own = address_of(attacker), other = address_of(victim), leader(10, 0, 0, 1);
  const wire::Psn start = wire::group_start_psn(kGroup, kEpoch);
  const auto mrp = [&](wire::Ipv4 from, wire::Ipv4 to, MrpType type, std::uint16_t epoch = kEpoch) {
    return mrp_frame(attacker, from, to, type, epoch);
  };
  wire::Frame of_another_version = mrp(own, kGroup, MrpType::kActivate);
  of_another_version.bytes[wire::kBthOffset] = 99;
  using enum wire::Opcode;
  return {
      {"drop_spoofed_source", group_frame(attacker, other, kRcAcknowledge, wire::Psn(0))},
      {"drop_spoofed_source", mrp(other, kGroup, MrpType::kUnregister)},
      {"drop_not_member", group_frame(attacker, own, kRcAcknowledge, start)},
      {"drop_not_member", group_frame(attacker, own, kRcSendOnly, start + 1000)},
      {"drop_mrp_foreign", mrp(own, kGroup, MrpType::kUnregister)},
      {"drop_mrp_foreign", mrp(own, kGroup, MrpType::kEvict)},
      {"mrp_reject", mrp(own, kGroup, MrpType::kRegister, kEpoch + 1)},
      {"drop_mrp_forged", mrp(own, other, MrpType::kReport)},
      {"drop_mrp_forged", mrp(own, leader, MrpType::kConfirm)},
      {"drop_malformed", of_another_version},
      // The UDP header as payload; the message's header among the packet's.
      {"drop_malformed", shifted(mrp(own, other, MrpType::kReport), -8)},
      {"drop_malformed", shifted(mrp(own, other, MrpType::kReport), 20)},
  };
}

TEST(HostilePeer, ForgesAndTheGroupGoesOn) {
  TestFabric fabric(net::Topology::star(4));
  LiveGroup group(fabric, 3);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  const auto attacker = fabric.attach("h3");
  std::uint32_t packets = 0;
  for (const auto& [name, frame] : attacks(*attacker, group.port(1))) {
    const std::uint64_t before = counter_of(fabric.status(), name);
    send_raw(*attacker, frame);
    const auto status = fabric.status_when(
        [&, n = name](const FabricStatus& s) { return counter_of(s, n) > before; });
    EXPECT_EQ(counter_of(status, name), before + 1) << name;
    ASSERT_NO_FATAL_FAILURE(group.transmit(packets++)) << name;
  }
}

TEST(HostilePeer, CrowdsItsDoorbellAndIsDetached) {
  TestFabric fabric(net::Topology::star(4));
  LiveGroup group(fabric, 3);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  const RawClient crowding(fabric.socket(), "h3");
  const fabric::WaitingCrowd crowd(crowding.own_doorbell(), 10);
  const auto abused = [](const FabricStatus& s) { return counter_of(s, "doorbell_abused"); };
  const auto until = std::chrono::steady_clock::now() + kTimeLimit;
  std::uint32_t packets = 0;
  while (abused(fabric.status()) == 0 && std::chrono::steady_clock::now() < until) {
    crowding.segment().client_sleeps().send_request(fabric::kWakeOnFrames);
    crowding.ring_doorbell();  // so that both of its rings are looked at
    send_packet(group.port(1), {.to = wire::Ipv4(10, 0, 0, 4)});
    ASSERT_NO_FATAL_FAILURE(group.transmit(packets++));
  }
  EXPECT_EQ(abused(fabric.status()), 1u);
  ASSERT_NO_FATAL_FAILURE(group.transmit(packets));
}

TEST(SignedGroup, IsRegisteredWithTheFabricsKeyOnly) {
  constexpr char kHex[] = "000102030405060708090a0b0c0d0e0f";
  net::Topology topology = net::Topology::star(2);
  topology.key_file = "/tmp/cepheus-key-" + std::to_string(getpid());
  std::ofstream(topology.key_file) << kHex << "\n";
  chmod(topology.key_file.c_str(), 0600);
  TestFabric fabric(topology);
  std::filesystem::remove(topology.key_file);
  const auto h0 = fabric.attach("h0"), h1 = fabric.attach("h1");
  auto message = message_of(MrpType::kRegister);
  message.add({address_of(*h0), qpn_of(0), 0});
  message.add({address_of(*h1), qpn_of(1), 0});
  send_mrp(*h0, message);
  const auto refused = [](const FabricStatus& s) {
    return counter(s.switches[0], "drop_mrp_unauthenticated") == 1;
  };
  const auto status = fabric.status_when(refused);
  EXPECT_TRUE(refused(status));
  EXPECT_TRUE(status.switches[0].groups.empty());

  const auto key = wire::MrpKey::parse(kHex);
  std::vector<std::uint8_t> bytes(wire::MrpMessage::kMaxDatagram);
  bytes.resize(key->sign(address_of(*h0), bytes, message.emit(bytes)));
  ASSERT_TRUE(await_space(*h0, bytes.size()));
  send_raw(*h0, mrp_frame(*h0, address_of(*h0), kGroup, bytes));
  wire::Frame arrived;
  ASSERT_TRUE(await_frame(*h1, arrived));
  const auto verified = key->verify(address_of(*h0), arrived.payload());
  ASSERT_TRUE(verified) << "the switch signs the parts";
  EXPECT_EQ(wire::MrpMessage::parse(*verified)->member_count, 1u);
}

}  // namespace
}  // namespace cepheus::live
