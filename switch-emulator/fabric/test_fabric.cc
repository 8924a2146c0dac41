#include "switch-emulator/fabric/test_fabric.h"

#include <cstring>

#include "libmcast/wire/icrc.h"

namespace cepheus::fabric {
namespace {

// Payload where it belongs: inline if it fits, else in the port's next slot.
void set_payload(HostPort& port, std::span<const std::uint8_t> payload, wire::Frame& frame) {
  if (frame.payload_fits_inline(payload.size())) return frame.set_inline_payload(payload);
  const auto slot = port.tx_buffer();
  if (slot.size() < payload.size()) throw std::runtime_error("no payload slot");
  std::memcpy(slot.data(), payload.data(), payload.size());
  frame.set_external_payload(slot.first(payload.size()), wire::kNoBuffer);
}

}  // namespace

void send_packet(HostPort& port, const Packet& packet) {
  if (!await_room(port, packet.payload_bytes)) throw std::runtime_error("no room to send");
  wire::RoceHeaders headers;
  headers.ethernet.source = port.identity().mac;
  headers.ethernet.destination = port.identity().gateway;
  headers.ip.source = port.identity().address;
  headers.ip.destination = packet.to;
  headers.udp.source_port = 0xC000;
  headers.bth.opcode = packet.opcode;
  headers.bth.destination_qp = packet.qpn;
  headers.bth.psn = packet.psn;
  headers.bth.ack_request = true;
  wire::Frame frame;
  headers.emit(frame, packet.payload_bytes);
  set_payload(port, std::vector<std::uint8_t>(packet.payload_bytes, packet.fill), frame);
  if (port.identity().icrc_always) wire::seal_icrc(frame);
  if (packet.damage_icrc) frame.icrc ^= 1;
  port.send(frame);
  port.flush();
}

void send_mrp(HostPort& port, const wire::MrpMessage& message) {
  std::vector<std::uint8_t> bytes(wire::MrpMessage::kMaxSize);
  bytes.resize(message.emit(bytes));
  if (!await_room(port, bytes.size())) throw std::runtime_error("no room to send");
  wire::UdpDatagram datagram;
  datagram.ethernet.source = port.identity().mac;
  datagram.ethernet.destination = port.identity().gateway;
  datagram.ip.source = port.identity().address;
  datagram.ip.destination = message.header.mcst_id;
  datagram.udp.source_port = wire::kDefaultMrpUdpPort;
  datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
  wire::Frame frame;
  datagram.emit(frame, bytes);
  if (frame.external != nullptr) set_payload(port, bytes, frame);
  port.send(frame);
  port.flush();
}

}  // namespace cepheus::fabric
