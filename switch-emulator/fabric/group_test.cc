// Replication through a live fabric: a group is registered by hand, and one sender reaches all.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "switch-emulator/fabric/test_fabric.h"

namespace cepheus::fabric {
namespace {

using wire::MrpType;

constexpr wire::McstId kGroup{198, 18, 0, 7};
constexpr std::uint16_t kEpoch = 1;

wire::MrpMessage message_of(MrpType type) {
  wire::MrpMessage message;
  message.header.type = type;
  message.header.epoch = kEpoch;
  message.header.mcst_id = kGroup;
  message.header.instance = 1;
  return message;
}

wire::Qpn qpn_of(std::size_t host) { return wire::Qpn(static_cast<std::uint32_t>(0x100 + host)); }

// The next datagram of the registration, as its type.
std::optional<MrpType> await_mrp(HostPort& port) {
  wire::Frame frame;
  if (!await_frame(port, frame)) return std::nullopt;
  const auto message = wire::MrpMessage::parse(frame.payload());
  const auto type = message ? std::optional(message->header.type) : std::nullopt;
  port.release();
  return type;
}

class LiveGroup {
 public:
  LiveGroup(TestFabric& fabric, std::size_t hosts) {
    for (std::size_t i = 0; i < hosts; ++i)
      ports_.push_back(fabric.attach("#" + std::to_string(i)));
  }
  HostPort& port(std::size_t host) { return *ports_[host]; }

  // Host 0 leads; what it says goes to all others. Their confirmations, which the switch passes on
  // unread, are left out.
  void set_up() {
    auto registration = message_of(MrpType::kRegister);
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      ASSERT_TRUE(registration.add({ports_[i]->identity().address, qpn_of(i), 0}));
    }
    send_mrp(*ports_[0], registration);
    for (std::size_t i = 1; i < ports_.size(); ++i)
      ASSERT_EQ(await_mrp(*ports_[i]), MrpType::kRegister) << i;
    send_mrp(*ports_[0], message_of(MrpType::kActivate));
    for (std::size_t i = 1; i < ports_.size(); ++i)
      ASSERT_EQ(await_mrp(*ports_[i]), MrpType::kActivate) << i;
  }

 private:
  std::vector<std::unique_ptr<HostPort>> ports_;
};

TEST(LiveGroup, ReachesEveryMemberByReferenceWithOneTransmission) {
  constexpr std::size_t kHosts = 4;
  constexpr std::uint32_t kPackets = 200;
  TestFabric fabric(Topology::star(kHosts));
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
  EXPECT_EQ(ports[0].rx_payload_bytes, kPackets * 4096u);
  for (std::size_t host = 1; host < kHosts; ++host) {
    EXPECT_EQ(ports[host].tx_payload_bytes, kPackets * 4096u);
    EXPECT_EQ(counter(ports[host].counters, "copied_payloads"), 0u);
  }
}

// What a host that is no member may try, and the counter that says so.
struct Attack {
  const char* counter;
  void (*strike)(HostPort& attacker, HostPort& victim);
};

// A frame as it is, from whoever its headers say.
void send_raw(HostPort& port, wire::Frame frame) {
  ASSERT_TRUE(await_room(port, 0));
  port.send(frame);
  port.flush();
}

wire::Frame mrp_frame(HostPort& port, Ipv4 from, Ipv4 to, std::span<const std::uint8_t> bytes) {
  wire::UdpDatagram datagram;
  datagram.ethernet.source = port.identity().mac;
  datagram.ethernet.destination = port.identity().gateway;
  datagram.ip.source = from;
  datagram.ip.destination = to;
  datagram.udp.source_port = datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
  wire::Frame frame;
  datagram.emit(frame, bytes);
  if (frame.external != nullptr) {
    const auto slot = port.tx_buffer();
    std::copy(bytes.begin(), bytes.end(), slot.begin());
    frame.set_external_payload(slot.first(bytes.size()), wire::kNoBuffer);
  }
  return frame;
}

// MRP of `type` about host 1, from and to whom it says.
wire::Frame mrp_frame(HostPort& port, Ipv4 from, Ipv4 to, MrpType type, std::uint16_t epoch) {
  auto message = message_of(type);
  message.header.epoch = epoch;
  message.add({Ipv4(10, 0, 0, 2), qpn_of(1), wire::kMemberDown});
  std::vector<std::uint8_t> bytes(wire::MrpMessage::kMaxSize);
  bytes.resize(message.emit(bytes));
  return mrp_frame(port, from, to, bytes);
}

wire::Frame feedback_frame(const HostPort& port, Ipv4 from, Psn psn) {
  wire::RoceHeaders headers;
  headers.ethernet.source = port.identity().mac;
  headers.ethernet.destination = port.identity().gateway;
  headers.ip.source = from;
  headers.ip.destination = kGroup;
  headers.bth.opcode = wire::Opcode::kRcAcknowledge;
  headers.bth.destination_qp = wire::kVirtualQpn;
  headers.bth.psn = psn;
  wire::Frame frame;
  headers.emit(frame, 0);
  return frame;
}

Ipv4 address_of(const HostPort& port) { return port.identity().address; }

constexpr Attack kAttacks[] = {
    {"drop_spoofed_source",
     [](HostPort& attacker, HostPort& victim) {
       send_raw(attacker, feedback_frame(attacker, address_of(victim), Psn(0)));
     }},
    {"drop_spoofed_source",
     [](HostPort& attacker, HostPort& victim) {
       send_raw(attacker,
                mrp_frame(attacker, address_of(victim), kGroup, MrpType::kUnregister, kEpoch));
     }},
    {"drop_not_member",
     [](HostPort& attacker, HostPort&) {
       send_raw(attacker, feedback_frame(attacker, address_of(attacker),
                                         wire::group_start_psn(kGroup, kEpoch)));
     }},
    {"drop_not_member",
     [](HostPort& attacker, HostPort&) {
       send_packet(attacker, {.to = kGroup,
                              .qpn = wire::kVirtualQpn,
                              .psn = wire::group_start_psn(kGroup, kEpoch) + 1000,
                              .payload_bytes = 256});
     }},
    {"drop_mrp_foreign",
     [](HostPort& attacker, HostPort&) {
       send_raw(attacker,
                mrp_frame(attacker, address_of(attacker), kGroup, MrpType::kUnregister, kEpoch));
     }},
    {"drop_mrp_foreign",
     [](HostPort& attacker, HostPort&) {
       send_raw(attacker,
                mrp_frame(attacker, address_of(attacker), kGroup, MrpType::kEvict, kEpoch));
     }},
    {"mrp_reject",
     [](HostPort& attacker, HostPort&) {
       send_raw(attacker,
                mrp_frame(attacker, address_of(attacker), kGroup, MrpType::kRegister, kEpoch + 1));
     }},
    {"drop_mrp_forged",
     [](HostPort& attacker, HostPort& victim) {
       send_raw(attacker, mrp_frame(attacker, address_of(attacker), address_of(victim),
                                    MrpType::kReport, kEpoch));
     }},
    {"drop_mrp_forged",
     [](HostPort& attacker, HostPort&) {
       send_raw(attacker, mrp_frame(attacker, address_of(attacker), Ipv4(10, 0, 0, 1),
                                    MrpType::kConfirm, kEpoch));
     }},
    {"drop_malformed",
     [](HostPort& attacker, HostPort&) {
       wire::Frame frame =
           mrp_frame(attacker, address_of(attacker), kGroup, MrpType::kActivate, kEpoch);
       frame.bytes[wire::kBthOffset] = 99;  // another version of the protocol
       send_raw(attacker, frame);
     }},
};

TEST(LiveGroup, GoesOnWhateverAStrangerForges) {
  TestFabric fabric(Topology::star(4));
  LiveGroup group(fabric, 3);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  const auto attacker = fabric.attach("h3");
  const Psn start = wire::group_start_psn(kGroup, kEpoch);
  std::uint32_t psn = 0;
  for (const Attack& attack : kAttacks) {
    const auto count_in = [&](const FabricStatus& status) {
      return counter(status.switches[0].ports[3].counters, attack.counter);
    };
    const std::uint64_t before = count_in(fabric.status());
    attack.strike(*attacker, group.port(1));
    const auto status =
        fabric.status_when([&](const FabricStatus& s) { return count_in(s) > before; });
    EXPECT_EQ(count_in(status), before + 1) << attack.counter;
    send_packet(
        group.port(0),
        {.to = kGroup, .qpn = wire::kVirtualQpn, .psn = start + psn++, .payload_bytes = 1024});
    for (const std::size_t member : {1u, 2u}) {
      wire::Frame frame;
      ASSERT_TRUE(await_frame(group.port(member), frame)) << attack.counter;
      EXPECT_EQ(frame.payload().size(), 1024u);
      group.port(member).release();
    }
  }
}

// A member may break its own group only, and not by claims about what was never sent.
TEST(LiveGroup, BelievesNoMemberThatAcknowledgesWhatWasNotSent) {
  TestFabric fabric(Topology::star(3));
  LiveGroup group(fabric, 3);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  const Psn start = wire::group_start_psn(kGroup, kEpoch);
  send_packet(group.port(0), {.to = kGroup, .qpn = wire::kVirtualQpn, .psn = start});
  wire::Frame frame;
  ASSERT_TRUE(await_frame(group.port(1), frame));
  group.port(1).release();
  send_raw(group.port(1), feedback_frame(group.port(1), address_of(group.port(1)), start + 5));
  send_packet(group.port(0), {.to = kGroup, .qpn = wire::kVirtualQpn, .psn = start + 100'000});
  const auto refused = [](const FabricStatus& s) {
    return std::pair(counter(s.switches[0].counters, "drop_feedback_unsent"),
                     counter(s.switches[0].counters, "drop_data_window"));
  };
  const std::pair<std::uint64_t, std::uint64_t> once(1, 1);
  const auto status = fabric.status_when([&](const FabricStatus& s) { return refused(s) == once; });
  EXPECT_EQ(refused(status), once);
  EXPECT_EQ(status.switches[0].groups.at(0).sent, start);
}

TEST(LiveGroup, IsRegisteredWithTheFabricsKeyOnly) {
  constexpr char kHex[] = "000102030405060708090a0b0c0d0e0f";
  Topology topology = Topology::star(2);
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
    return counter(s.switches[0].counters, "drop_mrp_unauthenticated") == 1;
  };
  const auto status = fabric.status_when(refused);
  EXPECT_TRUE(refused(status));
  EXPECT_TRUE(status.switches[0].groups.empty());

  const auto key = wire::MrpKey::parse(kHex);
  std::vector<std::uint8_t> bytes(wire::MrpKey::kMaxSize);
  bytes.resize(key->sign(address_of(*h0), bytes, message.emit(bytes)));
  ASSERT_TRUE(await_room(*h0, bytes.size()));
  send_raw(*h0, mrp_frame(*h0, address_of(*h0), kGroup, bytes));
  wire::Frame arrived;
  ASSERT_TRUE(await_frame(*h1, arrived));
  const auto verified = key->verify(address_of(*h0), arrived.payload());
  ASSERT_TRUE(verified) << "the switch signs again what it split";
  EXPECT_EQ(wire::MrpMessage::parse(*verified)->member_count, 1u);
}

// 40 members: a REGISTER that no longer fits into a frame, which the switch writes anew for every
// host.
TEST(LiveGroup, RegistersMoreMembersThanFitIntoAFrame) {
  constexpr std::size_t kHosts = 40;
  TestFabric fabric(Topology::star(kHosts));
  LiveGroup group(fabric, kHosts);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  const auto groups = fabric.status().switches[0].groups;
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].paths.size(), kHosts);
  EXPECT_TRUE(groups[0].active);
}

TEST(LiveGroup, CrossesTrunks) {
  const auto topology = Topology::from_toml(R"(
[[switch]]
name = "leaf0"
[[switch]]
name = "leaf1"
[[host]]
name = "a"
address = "10.0.0.1"
switch = "leaf0"
[[host]]
name = "b"
address = "10.0.0.2"
switch = "leaf1"
[[host]]
name = "c"
address = "10.0.0.3"
switch = "leaf1"
[[trunk]]
between = ["leaf0", "leaf1"]
)");
  ASSERT_TRUE(topology) << topology.error().text;
  TestFabric fabric(*topology);
  LiveGroup group(fabric, 3);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  const wire::Psn start = wire::group_start_psn(kGroup, kEpoch);
  send_packet(
      group.port(0),
      {.to = kGroup, .qpn = wire::kVirtualQpn, .psn = start, .payload_bytes = 2048, .fill = 5});
  for (const std::size_t host : {1u, 2u}) {
    wire::Frame frame;
    ASSERT_TRUE(await_frame(group.port(host), frame));
    EXPECT_EQ(frame.payload().size(), 2048u);
    EXPECT_THAT(frame.payload(), testing::Each(5));
    group.port(host).release();
  }
  const auto status = fabric.status();
  EXPECT_EQ(status.switches[0].ports[1].kind, PortKind::kSwitch);
  EXPECT_EQ(status.switches[0].ports[1].tx_payload_bytes, 2048u);  // once over the trunk
}

}  // namespace
}  // namespace cepheus::fabric
