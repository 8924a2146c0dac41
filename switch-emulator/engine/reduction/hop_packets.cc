#include "switch-emulator/engine/reduction/hop_packets.h"

#include <algorithm>
#include <cstring>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group/bridging.h"
#include "wire/ecn.h"
#include "wire/icrc.h"
#include "wire/reduction.h"

namespace cepheus::fabric {
namespace {

constexpr std::size_t kWord = 4;  // payloads are whole words on the wire

std::size_t whole_words(std::size_t bytes) { return (bytes + kWord - 1) / kWord * kWord; }

// The data, then zeros.
void fill_words(std::span<std::uint8_t> words, std::span<const std::uint8_t> data) {
  if (!data.empty()) std::memcpy(words.data(), data.data(), data.size());
  std::ranges::fill(words.subspan(data.size()), std::uint8_t{0});
}

}  // namespace

bool HopPackets::is_addressed_well(const GroupPacket& packet) const {
  const wire::Ipv4Header& ip = packet.headers.ip;
  const Path& path = group_.paths[packet.path];
  const Qpn qpn = packet.headers.bth.destination_qp;
  if (path.is_host) return ip.destination == group_.id && qpn == wire::kVirtualQpn;
  if (qpn != Qpn(group_.epoch)) return false;
  return packet.path == parent_
             ? ip.source == group_.id && ip.destination == call_.config.address
             : ip.source == call_.port(path.port).peer && ip.destination == group_.id;
}

wire::RoceHeaders HopPackets::headers_to(PathNo path, wire::Opcode opcode, Unit unit) const {
  const Path& to = group_.paths[path];
  const PortConfig& port = call_.port(to.port);
  wire::RoceHeaders h;
  if (path == parent_) {
    h.ip.source = call_.config.address;
    h.ip.destination = group_.id;
  } else {
    h.ip.source = group_.id;
    h.ip.destination = to.is_host ? port.host : port.peer;
  }
  h.ip.tos = traffic_class_;
  h.udp.source_port = flow_port(group_.id);
  h.bth.opcode = opcode;
  h.bth.destination_qp = to.is_host ? Qpn(to.qpn) : Qpn(group_.epoch);
  h.bth.psn = psn_of(start_, unit);
  return h;
}

// Packets sent here are the switch's own: they take no space of the frame that caused them.
// Otherwise a contribution would wait for results, and these for a pause that the contributions
// cause.
void HopPackets::send_unit(PathNo path, Unit unit, const UnitSlots::Content& content,
                           bool ack_request, bool is_repeat) {
  const PortId port = group_.paths[path].port;
  const std::size_t size = whole_words(content.data.size());
  wire::RoceHeaders h = headers_to(path, wire::Opcode::kRcSendOnlyImm, unit);
  h.ethernet = {call_.port(port).peer_mac, call_.config.mac};
  h.bth.ack_request = ack_request;
  h.bth.pad_count = static_cast<std::uint8_t>(size - content.data.size());
  wire::ReductionImm imm = wire::ReductionImm::from_what(content.shape.what);
  imm.epoch = static_cast<std::uint8_t>(group_.epoch);
  imm.unit = static_cast<std::uint16_t>(unit);
  h.imm.value = imm.value();
  Frame frame;
  h.emit(frame, size);
  if (!set_payload(frame, content)) {
    return call_.lose(Counter::kReductionSent, Counter::kDropNoPayload);
  }
  if (call_.icrc() == wire::Icrc::kPresent) wire::seal_icrc(frame);
  if (call_.emit(Counter::kReductionSent, port, frame) == nullptr) return;
  Emit& sent = call_.out.emits.back();
  sent.space = is_repeat ? Space::kNone : Space::kOwn;
  sent.worth = is_repeat ? Worth::kRepeat : worth_of_results();
  if (is_repeat) sent.origin = PortId();  // kRepeat charges it, and no frame of an ingress
}

// A member alone would pay for its own contributions.
Worth HopPackets::worth_of_results() const {
  return group_.paths.size() > 1 ? Worth::kResult : Worth::kNothing;
}

// The unit before the next one: before the first one there is none, and its PSN is S - 1.
void HopPackets::send_probe(PathNo path, Unit next) {
  send_unit(path, next - 1, {}, true, true);
  call_.count(Counter::kReductionProbes);
}

void HopPackets::send_answer(PathNo path, Unit stored, wire::Aeth answer, Space space) {
  const Unit unit = answer.kind == wire::AckKind::kAck ? stored - 1 : stored;
  wire::RoceHeaders h = headers_to(path, wire::Opcode::kRcAcknowledge, unit);
  h.ip.tos = wire::without_ecn(traffic_class_);
  h.aeth = answer;
  h.aeth.msn = static_cast<std::uint32_t>(stored & Psn::kMask);
  send_bare(path, Counter::kFeedbackSent, h, space);
}

void HopPackets::send_cnp(PathNo path) {
  wire::RoceHeaders h = headers_to(path, wire::Opcode::kCnp, 0);
  h.ip.tos = wire::without_ecn(traffic_class_);
  h.bth.becn = true;
  send_bare(path, Counter::kReductionCnp, h, Space::kNone);
}

void HopPackets::send_bare(PathNo path, Counter kind, const wire::RoceHeaders& headers,
                           Space space) {
  if (!send_made(call_, kind, group_.paths[path].port, headers)) return;
  call_.out.emits.back().space = space;
  call_.out.emits.back().worth = Worth::kNothing;
}

bool HopPackets::set_payload(Frame& frame, const UnitSlots::Content& content) {
  const std::size_t size = whole_words(content.data.size());
  if (frame.payload_fits_inline(size)) {
    fill_words({frame.bytes.data() + frame.header_len, size}, content.data);
    frame.payload_len = static_cast<std::uint16_t>(size);
    return true;
  }
  if (made_of_ != content.data.data()) {
    release();
    made_ = call_.payloads.make(size);
    if (made_.buffer == wire::kNoBuffer) return false;
    made_of_ = content.data.data();
    fill_words(made_.bytes, content.data);
  }
  frame.set_external_payload(made_.bytes, made_.buffer);
  return true;
}

// Its frames are on their way when the caller has read them.
void HopPackets::release() {
  if (made_of_ == nullptr) return;
  call_.out.released.emplace_back(call_.payloads, made_.buffer);
  made_of_ = nullptr;
}

}  // namespace cepheus::fabric
