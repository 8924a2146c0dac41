// A PROBE comes from a host of this switch, to MRP's port or to RoCE's, and is signed if the fabric
// has a key. It is checked as a copy, since its sender may change the payload meanwhile, and
// limited by a rate for each port. The answer says how the packet looked here. It is no longer than
// the request and goes to its sender only. Orders (a lost ACK, a CNP) are for the leader of an
// active group.
#include "switch-emulator/engine/registration/probes.h"

#include <algorithm>

#include "switch-emulator/engine/group/group_order.h"
#include "switch-emulator/engine/registration/signed_datagram.h"

namespace cepheus::fabric {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

// To RoCE's port a PROBE is an unreliable datagram: no group has those, and every network treats it
// as the data of groups.
bool is_datagram_of_roce(const Frame& frame) {
  return frame.icrc_state != wire::Icrc::kNone &&
         frame.header_len == wire::kExtensionOffset + wire::Deth::kSize &&
         frame.bytes[wire::kBthOffset] == static_cast<std::uint8_t>(wire::Opcode::kUdSendOnly);
}

bool begins_as_probe(std::span<const std::uint8_t> payload) {
  return payload.size() >= wire::MrpHeader::kSize && payload[0] == wire::MrpHeader::kVersion &&
         payload[1] == static_cast<std::uint8_t>(wire::MrpType::kProbe);
}

}  // namespace

bool Probes::on_frame(Call& call, const Frame& frame, const wire::UdpHeaders& headers) {
  const bool is_roce = is_datagram_of_roce(frame);
  const bool is_mrp =
      frame.header_len == wire::kBthOffset && headers.udp.destination_port == call.config.mrp_port;
  if ((!is_roce && !is_mrp) || !begins_as_probe(frame.payload())) return false;
  call.count(Counter::kMrpProbe);
  // The writer of a payload can still change it: what is checked is a copy.
  std::array<std::uint8_t, wire::Probe::kMostSize + wire::MrpMessage::kSignatureSize> copy;
  const auto payload = frame.payload().first(std::min(copy.size(), frame.payload().size()));
  std::ranges::copy(payload, copy.begin());
  const auto probe = wire::Probe::parse(std::span(copy).first(payload.size()));
  if (call.port(call.ingress()).kind != PortKind::kHost) {
    call.count(Counter::kDropMrpForged);
  } else if (!rate_.admit(call.ingress(), call.now)) {
    call.count(Counter::kDropProbe);
  } else if (!probe || probe->header.mcst_id != headers.ip.destination ||
             (is_mrp && !wire::UdpDatagram::parse(frame, headers))) {
    call.count(Counter::kDropMalformed);
  } else if (const std::size_t whole = probe->size() + wire::MrpMessage::kSignatureSize;
             call.config.mrp_key &&
             (payload.size() < whole ||
              !call.config.mrp_key->verify(headers.ip.source, std::span(copy).first(whole)))) {
    call.count(Counter::kDropMrpUnauthenticated);
  } else {
    answer(call, frame, headers, *probe);
  }
  return true;
}

wire::ProbeSight Probes::see(const Call& call, const Frame& frame,
                             const wire::UdpHeaders& headers) const {
  wire::ProbeSight seen;
  seen.length = headers.ip.total_length;
  seen.tos = headers.ip.tos;
  seen.ttl = headers.ip.ttl;
  seen.vlan_tag = frame.vlan_tag;
  seen.source_mac = headers.ethernet.source;
  seen.source_port = headers.udp.source_port;
  seen.destination_port = headers.udp.destination_port;
  seen.largest = static_cast<std::uint16_t>(call.port(call.ingress()).mtu - wire::Ethernet::kSize);
  seen.time_us =
      static_cast<std::uint64_t>(duration_cast<microseconds>(call.now.time_since_epoch()).count());
  if (const PortSight* sight = sights_[call.ingress().value()]; sight != nullptr) {
    seen.doubts = sight->doubts();
    seen.cores = sight->cores();
    seen.lost = sight->lost();
  }
  return seen;
}

// Of members at this switch.
std::uint32_t Probes::lost_by(const Mft& mft) const {
  std::uint32_t lost = 0;
  for (const Path& path : mft.paths) {
    const PortSight* sight = sights_[path.port.value()];
    if (sight != nullptr) lost += sight->lost();
  }
  return lost;
}

// Only the group's leader may order anything, at its own switch and by registration.
bool Probes::take_order(Call& call, const wire::UdpHeaders& headers, wire::Probe& probe) {
  GroupEntry* entry = groups_.find(probe.header.mcst_id);
  const bool is_leader = entry != nullptr && entry->leader.host == headers.ip.source &&
                         entry->leader.instance == probe.header.instance &&
                         entry->table.mft.epoch == probe.header.epoch && entry->is_active &&
                         leads_to(entry->table.mft, call.ingress()) &&
                         headers.udp.destination_port == call.config.mrp_port;
  if (!is_leader) return false;
  if (!entry->order) entry->order = std::make_unique<GroupOrder>();
  if (probe.order->kind != wire::OrderKind::kNone) entry->order->request(*probe.order);
  probe.order = entry->order->take_report();
  probe.order->lost = lost_by(entry->table.mft);
  return true;
}

// No answer is longer than its request, nor goes to another host.
void Probes::answer(Call& call, const Frame& frame, const wire::UdpHeaders& headers,
                    wire::Probe probe) {
  if (probe.order && !take_order(call, headers, probe)) return call.count(Counter::kDropMrpForeign);
  wire::UdpDatagram datagram;
  const bool from_switch = (probe.header.flags & wire::Probe::kFromSwitch) != 0;
  datagram.ip.source = from_switch ? call.config.address : headers.ip.destination;
  datagram.ip.destination = headers.ip.source;
  datagram.ip.tos = headers.ip.tos;
  datagram.udp.source_port = call.config.mrp_port;
  datagram.udp.destination_port =
      probe.reply_port != 0 ? probe.reply_port : headers.udp.source_port;
  datagram.ethernet.source = call.config.mac;
  datagram.ethernet.destination = call.port(call.ingress()).peer_mac;

  probe.header.type = wire::MrpType::kProbed;
  probe.seen = see(call, frame, headers);
  payload_.resize(std::max<std::size_t>(payload_.size(), call.port(call.ingress()).mtu));
  std::size_t size = probe.emit(payload_);
  if (call.config.mrp_key) size = call.config.mrp_key->sign(datagram.ip.source, payload_, size);
  const std::size_t most = std::min(frame.payload().size(), payload_.size());
  const std::size_t padded = std::clamp<std::size_t>(probe.answer_bytes, size, most);
  std::fill(payload_.begin() + static_cast<std::ptrdiff_t>(size),
            payload_.begin() + static_cast<std::ptrdiff_t>(padded), std::uint8_t{0});
  Frame sent;
  datagram.emit(sent, std::span(payload_).first(padded));
  call.emit(Counter::kMrpSent, call.ingress(), sent);
  call.count(Counter::kMrpTaken);
}

}  // namespace cepheus::fabric
