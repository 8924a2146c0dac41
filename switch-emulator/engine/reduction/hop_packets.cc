#include "switch-emulator/engine/reduction/hop_packets.h"

#include <algorithm>

#include "switch-emulator/engine/call.h"
#include "wire/ecn.h"
#include "wire/icrc.h"
#include "wire/reduction.h"

namespace cepheus::fabric {
namespace {

constexpr std::size_t kWord = 4;  // payloads are whole words on the wire

bool is_parent(const Mft& mft, PathNo path) {
  return path == mft.leader && !mft.paths[path].is_host;
}

std::size_t whole_words(std::size_t bytes) { return (bytes + kWord - 1) / kWord * kWord; }

}  // namespace

bool HopPackets::is_addressed_well(const Mft& mft, const GroupPacket& packet) {
  const Qpn qpn = packet.headers.bth.destination_qp;
  const bool to_group = packet.headers.ip.destination == mft.id;
  if (mft.paths[packet.path].is_host) return to_group && qpn == wire::kVirtualQpn;
  return to_group != is_parent(mft, packet.path) && qpn == Qpn(mft.epoch);
}

wire::RoceHeaders HopPackets::headers_to(PathNo path, wire::Opcode opcode, Unit unit) const {
  const Path& to = group_.paths[path];
  const PortConfig& port = call_.port(to.port);
  wire::RoceHeaders h;
  h.ethernet = {port.peer_mac, call_.config.mac};
  if (is_parent(group_, path)) {
    h.ip.source = call_.config.address;
    h.ip.destination = group_.id;
  } else {
    h.ip.source = group_.id;
    h.ip.destination = to.is_host ? port.host : port.peer;
  }
  h.ip.tos = traffic_class_;
  h.udp.source_port = static_cast<std::uint16_t>(0xC000 | (group_.id.value() & 0x3FFF));
  h.bth.opcode = opcode;
  h.bth.destination_qp = to.is_host ? Qpn(to.qpn) : Qpn(group_.epoch);
  h.bth.psn = psn_of(start_, unit);
  return h;
}

void HopPackets::send_unit(PathNo path, Unit unit, const UnitSlots::Content& content,
                           bool ack_request) {
  wire::RoceHeaders h = headers_to(path, wire::Opcode::kRcSendOnlyImm, unit);
  h.bth.ack_request = ack_request;
  wire::ReductionImm imm = wire::ReductionImm::from(std::uint32_t{content.shape.what} << 24);
  imm.epoch = static_cast<std::uint8_t>(group_.epoch);
  imm.unit = static_cast<std::uint16_t>(unit);
  h.imm.value = imm.value();
  send(path, h, content);
}

// The unit before the next one: before the first one there is none, and its PSN is S - 1.
void HopPackets::send_probe(PathNo path, Unit next) {
  send_unit(path, next - 1, {}, true);
  call_.count(Counter::kReductionProbes);
}

void HopPackets::send_answer(PathNo path, Unit stored, wire::Aeth answer) {
  const Unit unit = answer.kind == wire::AckKind::kAck ? stored - 1 : stored;
  wire::RoceHeaders h = headers_to(path, wire::Opcode::kRcAcknowledge, unit);
  h.ip.tos = wire::without_ecn(traffic_class_);
  h.aeth = answer;
  h.aeth.msn = static_cast<std::uint32_t>(stored & Psn::kMask);
  Frame frame;
  h.emit(frame, 0);
  if (call_.icrc() == wire::Icrc::kPresent) wire::seal_icrc(frame);
  call_.emit(Counter::kFeedbackSent, group_.paths[path].port, frame);
}

void HopPackets::send(PathNo path, const wire::RoceHeaders& headers,
                      const UnitSlots::Content& content) {
  const std::size_t size = whole_words(content.data.size());
  wire::RoceHeaders h = headers;
  h.bth.pad_count = static_cast<std::uint8_t>(size - content.data.size());
  Frame frame;
  h.emit(frame, size);
  if (!set_payload(frame, content)) {
    return call_.lose(Counter::kReductionSent, Counter::kDropNoPayload);
  }
  if (call_.icrc() == wire::Icrc::kPresent) wire::seal_icrc(frame);
  call_.emit(Counter::kReductionSent, group_.paths[path].port, frame);
}

bool HopPackets::set_payload(Frame& frame, const UnitSlots::Content& content) {
  const std::size_t size = whole_words(content.data.size());
  if (frame.payload_fits_inline(size)) {
    std::uint8_t* const at = frame.bytes.data() + frame.header_len;
    std::fill(std::ranges::copy(content.data, at).out, at + size, std::uint8_t{0});
    frame.payload_len = static_cast<std::uint16_t>(size);
    return true;
  }
  if (made_of_ != content.data.data()) {
    release();
    made_ = call_.payloads.make(size);
    if (made_.buffer == wire::kNoBuffer) return false;
    made_of_ = content.data.data();
    std::fill(std::ranges::copy(content.data, made_.bytes.begin()).out, made_.bytes.end(),
              std::uint8_t{0});
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
