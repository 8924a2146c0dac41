// Mutated frames into a switch with a running group, a pending one and a trunk; consistent after
// each.
//
// Input: records of (port, length, bytes). The first byte's high bit lets the bytes lie over a
// valid group frame whose ICRC is then made again, so that mutations reach beyond the checks of
// lengths and checksums.
#include <algorithm>
#include <map>
#include <vector>

#include "switch-emulator/engine/check.h"
#include "switch-emulator/engine/switch.h"
#include "wire/icrc.h"
#include "wire/publication.h"
#include "wire/roce.h"

namespace {

using namespace cepheus;  // NOLINT: a fuzzer's own file
using fabric::Switch;
using fabric::SwitchOutput;
using wire::Frame;

constexpr wire::McstId kGroup(198, 18, 0, 7);
constexpr std::uint16_t kPorts = 4;  // hosts on 0 to 2, a switch on 3

net::SwitchConfig make_config() {
  net::SwitchConfig config;
  config.address = wire::Ipv4(10, 255, 0, 1);
  config.max_groups = 4;
  config.max_held = 4;
  config.max_tombstones = 2;
  config.ports.resize(kPorts);
  for (std::uint8_t p = 0; p < 3; ++p) config.ports[p].host = wire::Ipv4(10, 0, 0, p + 1);
  config.ports[3].kind = net::PortKind::kSwitch;
  config.ports[3].peer = wire::Ipv4(10, 255, 0, 2);
  constexpr wire::Ipv4 kHome(10, 255, 0, 3);
  config.routes = {{kHome, {wire::PortId(3)}}};
  config.homes = std::make_shared<net::Homes>(net::Homes{{wire::Ipv4(10, 0, 0, 9), kHome}});
  return config;
}

class Harness {
 public:
  Harness() : switch_(make_config()) {
    control(wire::MrpType::kRegister, 1);
    control(wire::MrpType::kActivate, 1);
    control(wire::MrpType::kRegister, 2);
    for (std::uint8_t host = 1; host <= 3; ++host) publish(host);
  }

  void deliver(wire::PortId port, std::vector<std::uint8_t> bytes) {
    const wire::BufferRef ref = next_++;
    const auto at = buffers_.emplace(ref, std::move(bytes)).first;
    const auto frame = Frame::from_bytes(at->second, ref);
    SwitchOutput out;
    now_ += std::chrono::milliseconds(1);
    const bool held =
        frame && switch_.on_packet(now_, port, *frame, out) == fabric::Disposition::kHeld;
    settle(out);
    if (!held) buffers_.erase(ref);
  }
  void wait() {
    now_ += std::chrono::minutes(1);
    SwitchOutput out;
    switch_.on_timer(now_, out);
    settle(out);
  }

 private:
  void settle(const SwitchOutput& out) {
    switch_.check_consistent();
    fabric::must(switch_.imbalance().empty(), "counters that do not balance");
    for (const auto& emit : out.emits) {
      fabric::must(emit.port.value() < kPorts, "a frame for no port");
      std::vector<std::uint8_t> bytes(emit.frame.size());  // reads every byte it refers to
      fabric::must(emit.frame.to_bytes(bytes) == bytes.size(), "a frame that can't be written");
    }
    for (const auto ref : out.released) {
      fabric::must(buffers_.erase(ref) == 1, "released a buffer that was not held");
    }
    fabric::must(buffers_.size() <= 1 + 4 * 4, "more frames held than the gates may");
  }
  void control(wire::MrpType type, std::uint16_t epoch) {
    wire::MrpMessage message;
    message.header.type = type;
    message.header.epoch = epoch;
    message.header.mcst_id = kGroup;
    if (type == wire::MrpType::kActivate) message.header.flags = 3;  // all but the leader
    for (const std::uint8_t last : {1, 2, 3, 9}) {
      message.add({wire::Ipv4(10, 0, 0, last), wire::Qpn(0x100u + last), 0});
    }
    send(1, message);
  }
  // Two regions, the second smaller than what a WRITE may ask for.
  void publish(std::uint8_t host) {
    wire::Publication publication;
    publication.header.type = wire::MrpType::kPublish;
    publication.header.epoch = 1;
    publication.header.mcst_id = kGroup;
    publication.member = {wire::Ipv4(10, 0, 0, host), wire::Qpn(0x100u + host)};
    publication.regions[0] = {1, 0x11, 0x1000, 512};
    publication.regions[1] = {2, 0x12, 0x2000, 200};
    publication.count = 2;
    send(host, publication);
  }
  template <typename Message>
  void send(std::uint8_t host, const Message& message) {
    std::vector<std::uint8_t> payload(wire::MrpMessage::kMaxSize);
    payload.resize(message.emit(payload));
    wire::UdpDatagram datagram;
    datagram.ip.source = wire::Ipv4(10, 0, 0, host);
    datagram.ip.destination = kGroup;
    datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
    Frame frame;
    datagram.emit(frame, payload);
    std::vector<std::uint8_t> bytes(frame.size());
    frame.to_bytes(bytes);
    deliver(wire::PortId(host - 1u), std::move(bytes));
  }

  Switch switch_;
  std::map<wire::BufferRef, std::vector<std::uint8_t>> buffers_;
  wire::BufferRef next_ = 1;
  wire::Instant now_{std::chrono::seconds(1)};
};

// A group frame whose fields that matter come from the input: opcode, PSN, tag, AETH, source.
std::vector<std::uint8_t> shaped(std::uint16_t port, std::span<const std::uint8_t> in) {
  const auto byte = [&](std::size_t i) { return i < in.size() ? in[i] : std::uint8_t{0}; };
  constexpr wire::Opcode kOpcodes[] = {wire::Opcode::kRcSendOnly,    wire::Opcode::kRcSendFirst,
                                       wire::Opcode::kRcSendLast,    wire::Opcode::kRcAcknowledge,
                                       wire::Opcode::kRcWriteFirst,  wire::Opcode::kCnp,
                                       wire::Opcode::kRcReadRequest, wire::Opcode::kRcWriteOnly};
  const wire::Psn start = wire::group_start_psn(kGroup, 1 + (byte(0) >> 7));
  wire::RoceHeaders h;
  h.bth.opcode = kOpcodes[byte(0) & 7];
  h.bth.psn = start + static_cast<std::int8_t>(byte(1));
  h.ip.source = wire::Ipv4(10, 0, 0, static_cast<std::uint8_t>(port == 3 ? 9 : port + 1));
  h.ip.destination = kGroup;
  h.bth.destination_qp = wire::kVirtualQpn;
  if (port == 3) h.bth.destination_qp = wire::Qpn((start + byte(2)).value());
  if (port == 3 && (byte(0) & 8) != 0) {
    h.ip.source = kGroup;
    h.ip.destination = wire::Ipv4(10, 0, 0, 1 + byte(3) % 3);
  }
  h.aeth.kind = static_cast<wire::AckKind>(byte(4) >> 6);
  h.aeth.value = byte(4) & 31;
  h.reth = {byte(5), std::uint32_t{byte(6)} & 3, byte(7)};
  Frame frame;
  h.emit(frame, 4);
  const std::array<std::uint8_t, 4> payload{};
  frame.set_external_payload(payload, wire::kNoBuffer);
  std::vector<std::uint8_t> bytes(frame.size());
  frame.to_bytes(bytes);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Harness harness;
  // A turn of host 0 that only host 2 has yet to acknowledge, and host 1 already held at the gate.
  constexpr std::uint8_t kData[] = {0, 0};
  constexpr std::uint8_t kAck[] = {8 | 3, 0, 0, 0, 31};  // from the trunk, under the turn's name
  harness.deliver(wire::PortId(0), shaped(0, kData));
  harness.deliver(wire::PortId(3), shaped(3, kAck));
  harness.deliver(wire::PortId(1), shaped(1, kData));
  std::span<const std::uint8_t> rest(data, size);
  while (rest.size() >= 2) {
    const std::uint8_t what = rest[0];
    const std::size_t length = std::min<std::size_t>(rest[1], rest.size() - 2);
    const auto body = rest.subspan(2, length);
    rest = rest.subspan(2 + length);
    const std::uint16_t port = what & 3;
    if (what == 0x7F) {
      harness.wait();
    } else if ((what & 0x80) != 0) {
      harness.deliver(wire::PortId(port), shaped(port, body));
    } else {
      harness.deliver(wire::PortId(port), {body.begin(), body.end()});
    }
  }
  return 0;
}
