// Packets from the hosts of a TestNetwork: registration, data, feedback and notifications. Each host
// is one process at its control port; all but control_bytes() injects the packet at once.
#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"
#include "wire/icrc.h"
#include "wire/mrp.h"
#include "wire/test_bytes.h"

namespace cepheus::fabric {
namespace {

// From the process at its control port, to the registration port.
template <typename Message>
std::vector<std::uint8_t> datagram_bytes(std::size_t from, const Message& message,
                                         const wire::MrpKey* key) {
  std::vector<std::uint8_t> payload(wire::MrpMessage::kMaxDatagram);
  const std::size_t size = message.emit(payload);
  payload.resize(key != nullptr ? key->sign(TestNetwork::ip(from), payload, size) : size);
  wire::UdpDatagram datagram;
  datagram.ethernet.source = wire::mac_for(TestNetwork::ip(from));
  datagram.ip.source = TestNetwork::ip(from);
  datagram.ip.destination = message.header.mcst_id;
  datagram.udp.source_port = TestNetwork::control_port(from);
  datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
  Frame frame;
  datagram.emit(frame, payload);
  return wire::bytes_of(frame);
}

}  // namespace

void TestNetwork::register_group(std::size_t leader, std::uint16_t registration_epoch,
                                 std::vector<std::size_t> members, std::uint16_t flags) {
  if (members.empty()) {
    for (std::size_t h = 0; h < hosts_.size(); ++h) members.push_back(h);
  }
  std::vector<wire::MrpMember> list;
  for (const std::size_t h : members) list.push_back(member(h));
  registered[registration_epoch].insert(members.begin(), members.end());
  const std::size_t most =
      reduction ? wire::MrpMessage::kMaxWithReduction : wire::MrpMessage::kMaxMembers;
  const auto total = static_cast<std::uint16_t>((list.size() + most - 1) / most);
  for (std::uint16_t seq = 0; seq < total; ++seq) {
    const auto rest = std::span(list).subspan(seq * most);
    inject_bytes(leader, control_bytes(leader, wire::MrpType::kRegister, registration_epoch,
                                       rest.first(std::min(most, rest.size())), 1, seq, total,
                                       key(), flags, reduction));
  }
}

void TestNetwork::control(std::size_t leader, wire::MrpType type, std::uint16_t control_epoch,
                          const std::vector<wire::MrpMember>& members, std::uint32_t instance) {
  const auto& all = registered[control_epoch];
  const auto others = static_cast<std::uint16_t>(all.size() - all.count(leader));
  const bool has_count = type == wire::MrpType::kConnect || type == wire::MrpType::kActivate;
  inject_bytes(leader, control_bytes(leader, type, control_epoch, members, instance, 0, 1, key(),
                                     has_count ? others : 0));
}

std::vector<std::uint8_t> TestNetwork::control_bytes(
    std::size_t leader, wire::MrpType type, std::uint16_t control_epoch,
    std::span<const wire::MrpMember> members, std::uint32_t instance, std::uint16_t seq,
    std::uint16_t total, const wire::MrpKey* key, std::uint16_t flags,
    const std::optional<wire::MrpReduction>& reduction, McstId id) {
  wire::MrpMessage message;
  message.header.flags = flags;
  message.header.type = type;
  message.header.epoch = control_epoch;
  message.header.seq = seq;
  message.header.total = total;
  message.header.mcst_id = id;
  message.header.instance = instance;
  message.reduction = reduction;
  for (const auto& m : members) EXPECT_TRUE(message.add(m));
  return datagram_bytes(leader, message, key);
}

void TestNetwork::confirm(std::size_t host, wire::MrpType step, bool host_sync) {
  wire::MrpMessage message = message_about(wire::MrpType::kConfirm, {member(host)});
  message.header.flags = static_cast<std::uint16_t>(static_cast<int>(step) |
                                                    (host_sync ? wire::MrpHeader::kHostSync : 0));
  message.header.epoch = epoch;
  send_message(host, message);
}

wire::MrpMessage TestNetwork::message_about(wire::MrpType type,
                                            const std::vector<wire::MrpMember>& members) {
  wire::MrpMessage message = wire::mrp_message(type, kGroup);
  for (const wire::MrpMember& m : members) message.add(m);
  return message;
}

void TestNetwork::send_message(std::size_t host, const wire::MrpMessage& message) {
  inject_bytes(host, message_bytes(host, message));
}

std::vector<std::uint8_t> TestNetwork::message_bytes(std::size_t host,
                                                     const wire::MrpMessage& message) const {
  return datagram_bytes(host, message, hosts_key());
}

void TestNetwork::publish(std::size_t host, std::uint16_t serial,
                          const std::vector<wire::MrpRegion>& regions, std::uint16_t flags) {
  wire::Publication p;
  p.header = message_about(wire::MrpType::kPublish, {}).header;
  p.header.flags = flags;
  p.header.epoch = epoch;
  p.header.seq = serial;
  p.member = member(host);
  for (const wire::MrpRegion& region : regions) p.regions[p.count++] = region;
  inject_bytes(host, datagram_bytes(host, p, hosts_key()));
}

void TestNetwork::announce(std::size_t host, std::int64_t psn,
                           const std::vector<wire::AnnouncedTarget>& targets) {
  std::vector<std::uint8_t> list(wire::Announcement::size_of(targets.size()));
  wire::Announcement::emit(targets, list);
  auto h = headers_from(host, wire::Opcode::kRcWriteOnly, psn);
  h.reth = {0, wire::Announcement::kKey, static_cast<std::uint32_t>(list.size())};
  Frame frame;
  h.emit(frame, list.size());
  frame.set_external_payload(list, wire::kNoBuffer);
  wire::seal_icrc(frame);
  inject(host, frame);
}

void TestNetwork::write(std::size_t host, std::int64_t psn, std::uint16_t region,
                        std::uint64_t offset, std::uint32_t length, bool only) {
  auto h = headers_from(host, only ? wire::Opcode::kRcWriteOnly : wire::Opcode::kRcWriteFirst, psn);
  h.reth = {offset, region, length};
  inject(host, make_frame(host, h, 64));
}

void TestNetwork::set_up_group(std::size_t leader, std::uint16_t registration_epoch) {
  epoch = registration_epoch;
  register_group(leader, registration_epoch, {}, reduction ? wire::MrpHeader::kLossEnds : 0);
  // Trunks of a reduction learn its tree from these.
  const bool has_trees = reduction && switches_.size() > 1;
  for (std::size_t host = 0; host < hosts_.size() && has_trees; ++host) {
    if (host != leader) confirm(host, wire::MrpType::kRegister);
  }
  control(leader, wire::MrpType::kActivate, registration_epoch);
  clear();
}

wire::RoceHeaders TestNetwork::headers_from(std::size_t host, wire::Opcode opcode,
                                            std::int64_t psn) const {
  wire::RoceHeaders h;
  h.ethernet.source = wire::mac_for(ip(host));
  h.ethernet.destination = switches_[hosts_[host].at].config.mac;
  h.ip.source = ip(host);
  h.ip.destination = kGroup;
  h.udp.source_port = 0xC123;
  h.bth.opcode = opcode;
  h.bth.destination_qp = wire::kVirtualQpn;
  h.bth.psn = start_psn() + psn;
  return h;
}

Frame TestNetwork::make_frame(std::size_t host, const wire::RoceHeaders& headers,
                              std::size_t payload_bytes) {
  static const std::vector<std::uint8_t> kPayload(8192, 0x5A);
  static_cast<void>(host);
  Frame frame;
  headers.emit(frame, payload_bytes);
  frame.set_external_payload(std::span(kPayload).first(payload_bytes), wire::kNoBuffer);
  wire::seal_icrc(frame);
  return frame;
}

void TestNetwork::request(std::size_t host, wire::Opcode opcode, std::int64_t psn) {
  inject(host, make_frame(host, headers_from(host, opcode, psn), 64));
}

void TestNetwork::data(std::size_t host, std::int64_t psn, bool last) {
  request(host, last ? wire::Opcode::kRcSendOnly : wire::Opcode::kRcSendFirst, psn);
}

void TestNetwork::message(std::size_t host, std::int64_t first, std::int64_t final_psn) {
  for (std::int64_t psn = first; psn <= final_psn; ++psn) {
    const bool last = psn == final_psn;
    request(host,
            psn == first ? (last ? wire::Opcode::kRcSendOnly : wire::Opcode::kRcSendFirst)
            : last       ? wire::Opcode::kRcSendLast
                         : wire::Opcode::kRcSendMiddle,
            psn);
  }
}

void TestNetwork::feedback(std::size_t host, std::int64_t psn, wire::AckKind kind,
                           std::uint8_t value) {
  auto h = headers_from(host, wire::Opcode::kRcAcknowledge, psn);
  h.aeth.kind = kind;
  h.aeth.value = value;
  inject(host, make_frame(host, h));
}

void TestNetwork::ack(std::initializer_list<std::size_t> hosts, std::int64_t psn) {
  for (const std::size_t host : hosts) {
    feedback(host, psn, wire::AckKind::kAck, wire::Aeth::kNoCreditLimit);
  }
}
void TestNetwork::nak(std::size_t host, std::int64_t psn) {
  feedback(host, psn, wire::AckKind::kNak, 0);
}
void TestNetwork::rnr(std::size_t host, std::int64_t psn, std::uint8_t timer) {
  feedback(host, psn, wire::AckKind::kRnrNak, timer);
}
void TestNetwork::cnp(std::size_t host) {
  auto h = headers_from(host, wire::Opcode::kCnp, 0);
  h.bth.psn = Psn(0);
  inject(host, make_frame(host, h));
}

void TestNetwork::echo(std::size_t host, std::int64_t psn) {
  auto h = headers_from(host, wire::Opcode::kRcAcknowledge, psn);
  h.bth.becn = true;
  h.aeth.value = wire::Aeth::kNoCreditLimit;
  inject(host, make_frame(host, h));
}

}  // namespace cepheus::fabric
