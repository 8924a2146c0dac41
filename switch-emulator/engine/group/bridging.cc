#include "switch-emulator/engine/group/bridging.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/registration/claim.h"
#include "wire/icrc.h"

namespace cepheus::fabric {
namespace {

using wire::RoceHeaders;

template <typename Header>
std::span<std::uint8_t, Header::kSize> header_at(Frame& frame, std::size_t offset) {
  return std::span<std::uint8_t, Header::kSize>(frame.bytes.data() + offset, Header::kSize);
}
template <typename Header>
std::span<const std::uint8_t, Header::kSize> header_at(const Frame& frame, std::size_t offset) {
  return std::span<const std::uint8_t, Header::kSize>(frame.bytes.data() + offset, Header::kSize);
}

// To a packet of the member's own connection.
Rewrite to_host(const Call& call, const Group& group, PathNo path, Psn psn) {
  const Path& to = group.tree.paths[path];
  return {group.tree.id, call.port(to.port).host, 0, to.qpn, psn - group.turn.turns(path)};
}

// A packet from the switch itself in the group's name, for the node behind `path`.
RoceHeaders from_group(const Call& call, const Group& group, const Path& path,
                       const TurnName& turn) {
  RoceHeaders h;
  h.ip.tos = group.traffic_class;
  h.ip.source = group.tree.id;
  h.ip.destination = path.is_host ? call.port(path.port).host : turn.source;
  h.udp.source_port = flow_port(group.tree.id);
  h.bth.destination_qp = path.is_host ? Qpn(path.qpn) : Qpn(turn.base.value());
  return h;
}

}  // namespace

void rewrite(Call& call, PortId out, Frame& frame, const Frame& original, const Rewrite& r) {
  wire::Ethernet{call.port(out).peer_mac, call.config.mac}.emit(
      header_at<wire::Ethernet>(frame, 0));
  wire::rewrite_ipv4(header_at<wire::Ipv4Header>(frame, wire::kIpOffset),
                     header_at<wire::Ipv4Header>(original, wire::kIpOffset), r.source,
                     r.destination, r.hops);
  // It would cover the addresses; RoCEv2 allows 0.
  wire::clear_udp_checksum(header_at<wire::Udp>(frame, wire::kUdpOffset));
  wire::rewrite_bth(header_at<wire::Bth>(frame, wire::kBthOffset), r.qpn, r.psn);
  if (r.reth != nullptr) r.reth->emit(header_at<wire::Reth>(frame, wire::kExtensionOffset));
  if (r.aeth != nullptr) r.aeth->emit(header_at<wire::Aeth>(frame, wire::kExtensionOffset));
  if (frame.icrc_state == wire::Icrc::kPresent) {
    frame.icrc =
        wire::patch_icrc(original.icrc, original.header(), frame.header(), frame.payload_len);
  }
}

void route_on(Frame& copy, const Frame& original, const wire::Ipv4Header& ip, const wire::Mac& own,
              const wire::Mac& peer) {
  wire::Ethernet{peer, own}.emit(header_at<wire::Ethernet>(copy, 0));
  wire::rewrite_ipv4(header_at<wire::Ipv4Header>(copy, wire::kIpOffset),
                     header_at<wire::Ipv4Header>(original, wire::kIpOffset), ip.source,
                     ip.destination, 1);
}

bool send_data(Call& call, const Group& group, PathNo to, const GroupPacket& packet, Psn psn) {
  const Path& path = group.tree.paths[to];
  const wire::Ipv4Header& ip = packet.headers.ip;
  if (!path.is_host && ip.ttl <= 1) {
    call.lose(Counter::kDataCopies, Counter::kDropCopyTtl);
    return false;
  }
  Frame* copy = call.emit(Counter::kDataCopies, path.port, packet.frame);
  if (copy == nullptr) return false;
  const Qpn turn(group.turn.base().value());  // its name, between switches
  rewrite(call, path.port, *copy, packet.frame,
          path.is_host ? to_host(call, group, to, psn)
                       : Rewrite{ip.source, ip.destination, 1, turn, psn});
  return true;
}

bool send_addressed(Call& call, const Group& group, PathNo to, const GroupPacket& packet, Psn psn,
                    const wire::Reth& reth) {
  const PortId port = group.tree.paths[to].port;
  Frame* copy = call.emit(Counter::kDataCopies, port, packet.frame);
  if (copy == nullptr) return false;
  Rewrite r = to_host(call, group, to, psn);
  r.reth = &reth;
  rewrite(call, port, *copy, packet.frame, r);
  return true;
}

bool send_without_data(Call& call, const Group& group, PathNo to, const GroupPacket& packet,
                       Psn psn) {
  const PortId port = group.tree.paths[to].port;
  RoceHeaders h = packet.headers;
  const Rewrite r = to_host(call, group, to, psn);
  h.ethernet = {call.port(port).peer_mac, call.config.mac};
  h.ip.source = r.source;
  h.ip.destination = r.destination;
  h.bth.destination_qp = r.qpn;
  h.bth.psn = r.psn;
  h.bth.pad_count = 0;
  h.reth = {};
  Frame bare;
  h.emit(bare, 0);
  if (packet.frame.icrc_state == wire::Icrc::kPresent) wire::seal_icrc(bare);
  return call.emit(Counter::kDataCopies, port, bare) != nullptr;
}

void send_cnp(Call& call, const Group& group, const GroupPacket& packet) {
  const TurnName turn = group.turn.name();
  const Path& path = group.tree.paths[group.turn.source()];
  Frame* copy = call.emit(Counter::kCnpToSource, path.port, packet.frame);
  if (copy == nullptr) return;
  rewrite(call, path.port, *copy, packet.frame,
          {group.tree.id, path.is_host ? call.port(path.port).host : turn.source, 0,
           path.is_host ? Qpn(path.qpn) : Qpn(turn.base.value()), packet.psn()});
}

bool send_made(Call& call, Counter kind, PortId port, RoceHeaders headers) {
  headers.ethernet = {call.port(port).peer_mac, call.config.mac};
  Frame frame;
  headers.emit(frame, 0);
  if (call.icrc() == wire::Icrc::kPresent) wire::seal_icrc(frame);
  return call.emit(kind, port, frame) != nullptr;
}

void send_feedback(Call& call, const Group& group, PathNo path, const TurnName& turn,
                   const wire::Aeth& answer, Psn psn) {
  const Path& to = group.tree.paths[path];
  RoceHeaders h = from_group(call, group, to, turn);
  h.bth.opcode = wire::Opcode::kRcAcknowledge;
  h.bth.psn = psn;
  h.aeth = answer;
  h.aeth.msn = group.numbering.msn(group, path, answer.msn);
  send_made(call, Counter::kFeedbackSent, to.port, h);
}

void make_cnp(Call& call, const Group& group, Counter kind) {
  const Path& path = group.tree.paths[group.turn.source()];
  RoceHeaders h = from_group(call, group, path, group.turn.name());
  h.bth.opcode = wire::Opcode::kCnp;
  h.bth.becn = true;
  send_made(call, kind, path.port, h);
}

}  // namespace cepheus::fabric
