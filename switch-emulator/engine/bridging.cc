#include "switch-emulator/engine/bridging.h"

#include "switch-emulator/engine/call.h"
#include "wire/icrc.h"

namespace cepheus::fabric {
namespace {

using wire::RoceHeaders;

// The IBTA asks senders for a source port per flow, above 0xC000; it only spreads load.
std::uint16_t flow_port(const Group& group) {
  return static_cast<std::uint16_t>(0xC000 | (group.id.value() & 0x3FFF));
}

// Rewrites the headers that bridging touches, up to the BTH, and mends the ICRC.
void rewrite(Frame& frame, const Frame& original, RoceHeaders h) {
  h.udp.checksum = 0;  // it would cover the addresses; RoCEv2 lets it be none
  std::uint8_t* at = frame.bytes.data();
  h.ethernet.emit(std::span<std::uint8_t, wire::Ethernet::kSize>(at, wire::Ethernet::kSize));
  h.ip.emit(std::span<std::uint8_t, wire::Ipv4Header::kSize>(at + wire::kIpOffset,
                                                             wire::Ipv4Header::kSize));
  h.udp.emit(std::span<std::uint8_t, wire::Udp::kSize>(at + wire::kUdpOffset, wire::Udp::kSize));
  h.bth.emit(std::span<std::uint8_t, wire::Bth::kSize>(at + wire::kBthOffset, wire::Bth::kSize));
  if (frame.icrc_state == wire::Icrc::kPresent) {
    frame.icrc =
        wire::patch_icrc(original.icrc, original.header(), frame.header(), frame.payload_len);
  }
}

}  // namespace

void route_on(Frame& frame, const wire::Ipv4Header& ip, const wire::Mac& own,
              const wire::Mac& peer) {
  wire::Ethernet ethernet;
  ethernet.source = own;
  ethernet.destination = peer;
  wire::Ipv4Header next = ip;
  --next.ttl;
  std::uint8_t* at = frame.bytes.data();
  ethernet.emit(std::span<std::uint8_t, wire::Ethernet::kSize>(at, wire::Ethernet::kSize));
  next.emit(std::span<std::uint8_t, wire::Ipv4Header::kSize>(at + wire::kIpOffset,
                                                             wire::Ipv4Header::kSize));
}

bool send_data(Call& call, const Group& group, const Path& path, const Frame& frame,
               const RoceHeaders& headers, const TurnName& turn, Psn psn) {
  RoceHeaders h = headers;
  h.ethernet.source = call.config.mac;
  h.ethernet.destination = call.port(path.port).peer_mac;
  if (path.is_host) {
    h.ip.source = group.id;
    h.ip.destination = call.port(path.port).host;
    h.bth.destination_qp = path.qpn;
    h.bth.psn = psn - path.turns();
  } else {
    if (h.ip.ttl <= 1) {
      call.lose(Counter::kDataCopies, Counter::kDropCopyTtl);
      return false;
    }
    --h.ip.ttl;
    h.bth.destination_qp = Qpn(turn.base.value());
    h.bth.psn = psn;
  }
  Frame* copy = call.emit(Counter::kDataCopies, path.port, frame);
  if (copy == nullptr) return false;
  rewrite(*copy, frame, h);
  return true;
}

void send_cnp(Call& call, const Group& group, const Frame& frame, const RoceHeaders& headers) {
  const TurnName turn = group.turn.name();
  const Path& path = group.paths[group.turn.source()];
  RoceHeaders h = headers;
  h.ethernet.source = call.config.mac;
  h.ethernet.destination = call.port(path.port).peer_mac;
  h.ip.source = group.id;
  h.ip.destination = path.is_host ? call.port(path.port).host : turn.source;
  h.bth.destination_qp = path.is_host ? Qpn(path.qpn) : Qpn(turn.base.value());
  Frame* copy = call.emit(Counter::kCnpToSource, path.port, frame);
  if (copy != nullptr) rewrite(*copy, frame, h);
}

void send_feedback(Call& call, const Group& group, const Path& path, const TurnName& turn,
                   wire::AckKind kind, std::uint8_t value, Psn psn, std::uint32_t msn) {
  RoceHeaders h;
  h.ethernet.source = call.config.mac;
  h.ethernet.destination = call.port(path.port).peer_mac;
  h.ip.source = group.id;
  h.ip.destination = path.is_host ? call.port(path.port).host : turn.source;
  h.udp.source_port = flow_port(group);
  h.bth.opcode = wire::Opcode::kRcAcknowledge;
  h.bth.destination_qp = path.is_host ? Qpn(path.qpn) : Qpn(turn.base.value());
  h.bth.psn = psn;
  h.aeth.kind = kind;
  h.aeth.value = value;
  h.aeth.msn = msn & Psn::kMask;
  Frame frame;
  h.emit(frame, 0);
  if (call.icrc == wire::Icrc::kPresent) wire::seal_icrc(frame);
  call.emit(Counter::kFeedbackSent, path.port, frame);
}

}  // namespace cepheus::fabric
