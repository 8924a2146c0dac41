#include "tests/hostile/flood.h"

#include <algorithm>
#include <array>

namespace cepheus::hostile {
namespace {

constexpr int kAtOnce = 64;  // frames in a step

}  // namespace

void Flood::step() {
  wire::Frame received;
  while (port_->receive(received)) on_received(received);
  port_->release();
  int sent = 0;
  for (wire::Frame next; sent < kAtOnce && port_->free_entries() > 0; ++sent) {
    next = {};
    if (!make(next)) break;
    port_->send(next);
  }
  port_->flush();
  if (sent == 0 && !port_->is_connected()) port_ = attach(scenario_);
}

bool Flood::set_payload(wire::Frame& frame, std::span<const std::uint8_t> bytes, bool copied) {
  if (frame.payload_fits_inline(bytes.size())) {
    frame.set_inline_payload(bytes);
    return true;
  }
  const auto slot = port_->tx_buffer();
  if (slot.size() < bytes.size()) return false;
  if (copied) std::copy(bytes.begin(), bytes.end(), slot.begin());
  frame.set_external_payload(slot.first(bytes.size()), wire::kNoBuffer);
  return true;
}

wire::RoceHeaders Flood::roce_to(wire::Ipv4 to, wire::Opcode opcode, wire::Qpn qpn) const {
  wire::RoceHeaders headers;
  headers.ethernet.source = port_->identity().mac;
  headers.ethernet.destination = port_->identity().gateway;
  headers.ip.source = port_->identity().address;
  headers.ip.destination = to;
  headers.udp.source_port = 0xC000;
  headers.bth.opcode = opcode;
  headers.bth.destination_qp = qpn;
  return headers;
}

wire::UdpDatagram Flood::datagram_to(wire::Ipv4 to, std::uint16_t udp_port) const {
  wire::UdpDatagram headers;
  headers.ethernet.source = port_->identity().mac;
  headers.ethernet.destination = port_->identity().gateway;
  headers.ip.source = port_->identity().address;
  headers.ip.destination = to;
  headers.udp.source_port = 40000;
  headers.udp.destination_port = udp_port;
  return headers;
}

bool Flood::make_registration(wire::Frame& frame, const wire::MrpMessage& message) {
  std::array<std::uint8_t, wire::MrpMessage::kMaxSize> bytes;
  const std::span<const std::uint8_t> data(bytes.data(), message.emit(bytes));
  datagram_to(message.header.mcst_id, wire::kDefaultMrpUdpPort).emit(frame, data);
  return frame.external == nullptr || set_payload(frame, data, true);
}

}  // namespace cepheus::hostile
