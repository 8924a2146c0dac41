// Mutated frames into a switch with a running group, a pending one, two of reductions, a sender group
// and a trunk; consistent after each.
//
// Input: records of (port, length, bytes). The first byte's high bit lets the bytes choose the
// fields of a valid frame, so that mutations reach beyond the checks of lengths and checksums: of a
// group, or with the next bit as well, of a sender group. A bit of the frame's own first byte makes it
// one of a reduction group.
#include <algorithm>
#include <vector>

#include "switch-emulator/engine/check.h"
#include "switch-emulator/engine/switch.h"
#include "switch-emulator/engine/test_payloads.h"
#include "switch-emulator/engine/views.h"
#include "wire/icrc.h"
#include "wire/probe.h"
#include "wire/publication.h"
#include "wire/reduction.h"
#include "wire/roce.h"
#include "wire/sender_group.h"

namespace {

using namespace cepheus;  // NOLINT: a fuzzer's own file
using fabric::SwitchOutput;
using wire::Frame;

constexpr wire::McstId kGroup(198, 18, 0, 7), kPending(198, 18, 0, 8);
// Reductions whose root is here, and behind the trunk.
constexpr wire::McstId kRoot(198, 18, 0, 9), kLeaf(198, 18, 0, 10);
constexpr std::uint16_t kWindow = 4, kUnit = 16;
constexpr std::uint16_t kPorts = 4;  // hosts on 0 to 2, a switch on 3
constexpr wire::Qpn kVirtual(wire::kFirstSenderGroupQpn + 5);
constexpr wire::Psn kSenderStart(0xFFFFF0);
// Receivers of sender groups; 9 is behind the trunk, 8 is unknown.
constexpr std::uint8_t kReceivers[] = {2, 3, 9, 8, 1};

wire::Ipv4 host(std::uint8_t last) { return {10, 0, 0, last}; }
const wire::MrpTree kBehindTrunk{1, 0, host(9), host(9), 1};

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
  constexpr wire::Ipv4 kAttachment(10, 255, 0, 3);
  config.routes = {{kAttachment, {wire::PortId(3)}}};
  config.attachments =
      std::make_shared<net::Attachments>(net::Attachments{{wire::Ipv4(10, 0, 0, 9), kAttachment}});
  return config;
}

template <typename Message>
std::vector<std::uint8_t> datagram(wire::Ipv4 source, wire::Ipv4 destination,
                                   const Message& message) {
  std::vector<std::uint8_t> payload(wire::MrpMessage::kMaxSize);
  payload.resize(message.emit(payload));
  wire::UdpDatagram d;
  d.ip.source = source;
  d.ip.destination = destination;
  d.udp.destination_port = wire::kDefaultMrpUdpPort;
  Frame frame;
  d.emit(frame, payload);
  std::vector<std::uint8_t> bytes(frame.size());
  frame.to_bytes(bytes);
  return bytes;
}

std::vector<std::uint8_t> with_payload(const wire::RoceHeaders& headers, std::size_t size = 4) {
  Frame frame;
  headers.emit(frame, size);
  const std::vector<std::uint8_t> payload(size);
  frame.set_external_payload(payload, wire::kNoBuffer);
  std::vector<std::uint8_t> bytes(frame.size());
  frame.to_bytes(bytes);
  return bytes;
}

// The input's next bytes, as many as requested.
class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint8_t operator()(std::size_t i) const { return i < bytes_.size() ? bytes_[i] : 0; }

 private:
  std::span<const std::uint8_t> bytes_;
};

class Harness {
 public:
  Harness() {
    control(wire::MrpType::kRegister, 1);
    control(wire::MrpType::kActivate, 1);
    control(wire::MrpType::kRegister, 1, kPending);
    for (std::uint8_t last = 1; last <= 3; ++last) publish(last);
    for (const auto type : {wire::MrpType::kRegister, wire::MrpType::kActivate}) {
      control(type, 1, kRoot);
      control(type, 1, kLeaf, 9);
      if (type == wire::MrpType::kRegister) confirm_behind_trunk();
    }
  }

  void deliver(wire::PortId port, std::vector<std::uint8_t> bytes) {
    const wire::BufferRef ref = payloads_.add(std::move(bytes));
    const auto frame = Frame::from_bytes(payloads_.bytes(ref), ref);
    SwitchOutput out;
    now_ += std::chrono::milliseconds(1);
    if (frame) switch_.on_packet(now_, port, *frame, out);
    check(out);
    payloads_.release(ref);
  }
  void wait(wire::Duration time) {
    now_ += time;
    SwitchOutput out;
    switch_.on_timer(now_, out);
    check(out);
    fabric::must(switch_.deadline() > now_, "a deadline that on_timer does not move");
  }
  // The state that the input meets: if all frames were dropped, the fuzzer would find nothing.
  void check_set_up() const {
    const auto senders = switch_.sender_groups();
    fabric::must(switch_.group_count() == 4, "running groups and a pending one");
    for (const auto id : {kRoot, kLeaf}) {
      const auto group = switch_.group(id);
      fabric::must(group->active && group->reduction->newest == 2, "units under way");
      fabric::must(group->reduction->complete == 1, "... and one that all have contributed to");
    }
    fabric::must(senders.size() == 1 && senders[0].copies == 6,
                 "a sender group that data flows in");
    fabric::must(senders[0].receivers.size() == 3 && senders[0].receivers[2].acked == kSenderStart,
                 "that feedback is merged of");
  }

 private:
  void check(const SwitchOutput& out) {
    switch_.check_consistent();
    fabric::must(switch_.imbalance().empty(), "counters that do not balance");
    for (const auto& emit : out.emits) {
      fabric::must(emit.port.value() < kPorts, "a frame for no port");
      std::vector<std::uint8_t> bytes(emit.frame.size());  // reads every byte it refers to
      fabric::must(emit.frame.to_bytes(bytes) == bytes.size(), "a frame that can't be written");
    }
    fabric::must(payloads_.in_use() <= 1 + 4 * 4 + out.released.size(),
                 "more frames held than the gates may");
  }
  void control(wire::MrpType type, std::uint16_t epoch, wire::McstId group = kGroup,
               std::uint8_t leader = 1) {
    wire::MrpMessage message;
    if (type == wire::MrpType::kRegister && (group == kRoot || group == kLeaf)) {
      message.header.flags = wire::MrpHeader::kLossEnds;
      const auto kind = group == kRoot ? wire::MrpReduction::kOrdered : wire::MrpReduction::kValues;
      message.reduction = wire::MrpReduction{kind, kUnit, kWindow};
    }
    message.header.type = type;
    message.header.epoch = epoch;
    message.header.mcst_id = group;
    if (type == wire::MrpType::kActivate) message.header.flags = 3;  // all but the leader
    if (type == wire::MrpType::kActivate && group == kLeaf) message.tree = kBehindTrunk;
    for (const std::uint8_t last : {1, 2, 3, 9}) {
      if (last != 9 || leader != 9) message.add({host(last), wire::Qpn(0x100u + last), 0});
    }
    send(leader, message, group);
  }
  void confirm_behind_trunk() {
    wire::MrpMessage message;
    message.header.type = wire::MrpType::kConfirm;
    message.header.flags = static_cast<std::uint16_t>(wire::MrpType::kRegister);
    message.header.epoch = 1;
    message.header.mcst_id = kRoot;
    message.add({host(9), wire::Qpn(0x109u), 0});
    message.tree = kBehindTrunk;
    send(9, message, kRoot);
  }
  // Two regions, the second smaller than the largest WRITE.
  void publish(std::uint8_t last) {
    wire::Publication publication;
    publication.header.type = wire::MrpType::kPublish;
    publication.header.epoch = 1;
    publication.header.mcst_id = kGroup;
    publication.member = {host(last), wire::Qpn(0x100u + last)};
    publication.regions[0] = {1, 0x11, 0x1000, 512};
    publication.regions[1] = {2, 0x12, 0x2000, 200};
    publication.count = 2;
    send(last, publication, kGroup);
  }
  template <typename Message>
  void send(std::uint8_t last, const Message& message, wire::McstId group) {
    deliver(wire::PortId(std::min(last - 1u, 3u)), datagram(host(last), group, message));
  }

  fabric::TestPayloads payloads_;
  fabric::Switch switch_{make_config(), payloads_};
  wire::Instant now_{std::chrono::seconds(1)};
};

// A frame of a reduction group: its opcode, which group, PSN, immediate data, AETH, bytes.
std::vector<std::uint8_t> shaped_reduction(std::uint16_t port, const Choices& byte) {
  constexpr wire::Opcode kOpcodes[] = {wire::Opcode::kRcSendOnlyImm, wire::Opcode::kRcSendOnlyImm,
                                       wire::Opcode::kRcSendOnlyImm, wire::Opcode::kRcSendOnlyImm,
                                       wire::Opcode::kRcAcknowledge, wire::Opcode::kRcAcknowledge,
                                       wire::Opcode::kCnp,           wire::Opcode::kRcWriteOnly};
  const wire::McstId id = (byte(0) & 8) != 0 ? kLeaf : kRoot;
  const wire::Ipv4 neighbour(10, 255, 0, 2), own = make_config().address;
  const bool is_up = id == kRoot;  // between the switches
  wire::RoceHeaders h;
  h.bth.opcode = kOpcodes[byte(0) & 7];
  h.bth.psn = wire::group_start_psn(id, 1) + static_cast<std::int8_t>(byte(1));
  h.ip.source = port == 3 ? (is_up ? neighbour : id) : host(static_cast<std::uint8_t>(port + 1));
  h.ip.destination = port == 3 && !is_up ? own : id;
  h.bth.destination_qp = port == 3 ? wire::Qpn(1) : wire::kVirtualQpn;
  h.bth.pad_count = byte(3) & 3;
  // Barriers, ORs, maxima and sums, of bytes, int32, float and one unknown type.
  constexpr std::uint8_t kOperations[] = {0, 1, 8, 9}, kTypes[] = {0, 5, 8, 10};
  h.imm.value = wire::ReductionImm{kOperations[byte(2) & 3], kTypes[byte(2) >> 2 & 3], 1,
                                   static_cast<std::uint16_t>(static_cast<std::int8_t>(byte(1)) +
                                                              (byte(2) >> 7))}
                    .value();
  h.aeth.kind = static_cast<wire::AckKind>(byte(4) >> 6);
  h.aeth.value = byte(4) % 51;
  return with_payload(h, (byte(3) >> 2) % 5 * 4u);
}

// A group frame with the important fields from the input: opcode, PSN, tag, AETH, source.
std::vector<std::uint8_t> shaped(std::uint16_t port, std::span<const std::uint8_t> in) {
  const Choices byte(in);
  if ((byte(0) & 0x40) != 0) return shaped_reduction(port, byte);
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
  h.aeth.value = byte(4) % 51;
  h.reth = {byte(5), std::uint32_t{byte(6)} & 3, byte(7)};
  return with_payload(h);
}

// A source address that the port allows: its host's, and on the trunk a host's behind it.
wire::Ipv4 allowed_source(std::uint16_t port) {
  return host(static_cast<std::uint8_t>(port == 3 ? 9 : port + 1));
}

// Registration of a sender group: type, flags, epoch, instance, share, receivers and their regions,
// destination. Byte 0: the source, mostly the port's own host.
std::vector<std::uint8_t> shaped_registration(std::uint16_t port, const Choices& byte) {
  constexpr wire::MrpType kTypes[] = {wire::MrpType::kInstall,   wire::MrpType::kInstall,
                                      wire::MrpType::kInstalled, wire::MrpType::kReject,
                                      wire::MrpType::kRemove,    wire::MrpType::kQuery,
                                      wire::MrpType::kReport,    wire::MrpType::kInstall};
  wire::SenderGroupMessage m;
  m.header.type = kTypes[byte(1) & 7];
  m.header.flags = byte(1) >> 3 & 1;
  m.header.epoch = byte(1) >> 4 & 3;
  m.header.instance = byte(1) >> 6;
  m.header.seq = byte(2) & 3;
  m.control_port = 20000;
  m.virtual_qpn = wire::Qpn(kVirtual.value() + (byte(2) >> 2 & 1));
  m.sender_qpn = wire::Qpn(0x100u + (byte(2) >> 3 & 1));
  m.start = kSenderStart;
  m.share = (byte(2) & 0x10) != 0 ? 0 : wire::SenderGroupMessage::kWholeShare >> (byte(2) >> 5);
  for (std::size_t i = 0; i < std::size(kReceivers); ++i) {
    if ((byte(3) >> i & 1) == 0) continue;
    m.add({host(kReceivers[i]), wire::Qpn(0x200u + kReceivers[i]), 0, 20001});
    if ((byte(4) >> i & 1) != 0) m.add_region(m.receiver_count - 1, {1, 0x11, 0x1000, 200});
  }
  m.addressed = host(kReceivers[byte(5) % std::size(kReceivers)]);
  const wire::Ipv4 destination = host(kReceivers[(byte(5) >> 3) % std::size(kReceivers)]);
  const wire::Ipv4 source = (byte(0) & 0x10) != 0 ? host(byte(0) & 15) : allowed_source(port);
  const bool is_answer =
      m.header.type == wire::MrpType::kInstalled || m.header.type == wire::MrpType::kReject;
  m.header.mcst_id = is_answer ? host(1 + (byte(0) >> 7)) : source;
  return datagram(source, is_answer ? m.sender() : destination, m);
}

// Data to a sender group's virtual queue pair, or feedback to it: opcode, PSN, AETH, RETH,
// destination.
std::vector<std::uint8_t> shaped_sender(std::uint16_t port, const Choices& byte) {
  constexpr wire::Opcode kOpcodes[] = {wire::Opcode::kRcSendOnly,    wire::Opcode::kRcSendFirst,
                                       wire::Opcode::kRcAcknowledge, wire::Opcode::kRcAcknowledge,
                                       wire::Opcode::kRcWriteFirst,  wire::Opcode::kCnp,
                                       wire::Opcode::kRcReadRequest, wire::Opcode::kRcWriteOnly};
  wire::RoceHeaders h;
  h.bth.opcode = kOpcodes[byte(1) & 7];
  h.bth.ack_request = (byte(1) & 8) != 0;
  h.bth.becn = (byte(1) & 16) != 0;
  h.bth.destination_qp = wire::Qpn(kVirtual.value() + (byte(1) >> 7));
  h.bth.psn = kSenderStart + static_cast<std::int8_t>(byte(2));
  h.ip.source = allowed_source(port);
  const bool is_feedback =
      h.bth.opcode == wire::Opcode::kRcAcknowledge || h.bth.opcode == wire::Opcode::kCnp;
  h.ip.destination =
      is_feedback ? host(1 + (byte(3) >> 7)) : host(kReceivers[byte(3) % std::size(kReceivers)]);
  h.aeth.kind = static_cast<wire::AckKind>(byte(4) >> 6);
  h.aeth.value = byte(4) % 51;
  h.reth = {byte(5), std::uint32_t{byte(6)} & 1, byte(7)};
  return with_payload(h);
}

// A PROBE, mostly of the running group's leader: an order, length of the answer.
std::vector<std::uint8_t> shaped_probe(std::uint16_t port, const Choices& byte) {
  wire::Probe probe;
  probe.header.type = wire::MrpType::kProbe;
  probe.header.epoch = 1;
  probe.header.mcst_id = kGroup;
  probe.header.instance = byte(2) >> 6;
  probe.header.flags = byte(2) & 1;
  probe.answer_bytes = byte(3);
  if ((byte(2) & 2) == 0)
    probe.order = wire::OrderRecord{static_cast<wire::OrderKind>(byte(4) % 5), byte(5)};
  return datagram(allowed_source(port), kGroup, probe);
}

std::vector<std::uint8_t> of_sender_group(std::uint16_t port, std::span<const std::uint8_t> in) {
  const Choices byte(in);
  if ((byte(0) & 0x20) != 0 && (byte(1) & 7) == 7) return shaped_probe(port, byte);
  return (byte(0) & 0x20) != 0 ? shaped_registration(port, byte) : shaped_sender(port, byte);
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
  // A sender group of host 0, to hosts 1 and 2 and the one behind the trunk; all have answered the
  // first packet, the second is under way.
  constexpr std::uint8_t kInstall[] = {0x20, 8, 0, 7, 7}, kFirst[] = {0, 8, 0},
                         kSecond[] = {0, 8, 1}, kHave[] = {0, 2, 0, 0, 31};
  harness.deliver(wire::PortId(0), of_sender_group(0, kInstall));
  harness.deliver(wire::PortId(0), of_sender_group(0, kFirst));
  for (const std::uint16_t port : {1, 2, 3}) {
    harness.deliver(wire::PortId(port), of_sender_group(port, kHave));
  }
  harness.deliver(wire::PortId(0), of_sender_group(0, kSecond));
  // Reductions: all here have contributed to unit 0, host 2 also to unit 1.
  constexpr std::uint8_t kRootUnit[] = {0x40, 0, 1, 8}, kLeafUnit[] = {0x48, 0, 1, 8},
                         kRootNext[] = {0x40, 1, 1, 8}, kLeafNext[] = {0x48, 1, 1, 8};
  for (const std::uint16_t port : {0, 1, 2}) {
    harness.deliver(wire::PortId(port), shaped(port, kRootUnit));
    harness.deliver(wire::PortId(port), shaped(port, kLeafUnit));
  }
  harness.deliver(wire::PortId(3), shaped(3, kRootUnit));
  harness.deliver(wire::PortId(2), shaped(2, kRootNext));
  harness.deliver(wire::PortId(2), shaped(2, kLeafNext));
  harness.check_set_up();
  std::span<const std::uint8_t> rest(data, size);
  while (rest.size() >= 2) {
    const std::uint8_t what = rest[0];
    const std::size_t length = std::min<std::size_t>(rest[1], rest.size() - 2);
    const auto body = rest.subspan(2, length);
    rest = rest.subspan(2 + length);
    const std::uint16_t port = what & 3;
    if (what == 0x7F) {
      harness.wait(std::chrono::minutes(1));
    } else if (what == 0x7E) {
      harness.wait(std::chrono::milliseconds(10));
    } else if ((what & 0xC0) == 0xC0) {
      harness.deliver(wire::PortId(port), of_sender_group(port, body));
    } else if ((what & 0x80) != 0) {
      harness.deliver(wire::PortId(port), shaped(port, body));
    } else {
      harness.deliver(wire::PortId(port), {body.begin(), body.end()});
    }
  }
  return 0;
}
