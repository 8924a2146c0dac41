// A switch's registration datagrams: signed and verified, if the fabric has a key, in the name of the
// datagram's source.
#pragma once

#include <array>
#include <cassert>
#include <optional>
#include <span>

#include "switch-emulator/engine/call.h"
#include "wire/roce.h"

namespace cepheus::fabric {

// Emits on `port` the payload that `write(buffer)` writes; it returns the size, or 0 if it needs
// more space. Fills in the fields of `datagram` that concern the next hop only.
template <typename Write>
void write_signed(Call& call, PortId port, wire::UdpDatagram datagram, Write&& write) {
  datagram.ethernet.source = call.config.mac;
  datagram.ethernet.destination = call.port(port).peer_mac;
  std::array<std::uint8_t, Frame::kCapacity - wire::kBthOffset> small;
  std::span<std::uint8_t> buffer = small;
  const auto write_all = [&] {
    const std::size_t bare = write(buffer);
    const bool signs = bare != 0 && call.config.mrp_key;
    return signs ? call.config.mrp_key->sign(datagram.ip.source, buffer, bare) : bare;
  };
  std::size_t size = write_all();
  if (size == 0) {
    buffer = call.scratch.take();
    size = write_all();
  }
  assert(size > 0);
  Frame frame;
  datagram.emit(frame, buffer.first(size));
  call.emit(Counter::kMrpSent, port, frame);
}

template <typename Message>
void send_signed(Call& call, PortId port, const wire::UdpDatagram& datagram,
                 const Message& message) {
  write_signed(call, port, datagram,
               [&](std::span<std::uint8_t> buffer) { return message.emit(buffer); });
}

// The payload of a received one without its signature; empty if that is wrong.
inline std::optional<std::span<const std::uint8_t>> verified(const Call& call, Ipv4 source,
                                                             const Frame& frame) {
  if (!call.config.mrp_key) return frame.payload();
  return call.config.mrp_key->verify(source, frame.payload());
}

// Datagrams to a process come from the registration port: no host can send from there.
inline void address_process(const Call& call, std::uint16_t control_port, wire::Udp& udp) {
  udp.source_port = call.config.mrp_port;
  udp.destination_port = control_port != 0 ? control_port : call.config.mrp_port;
}

}  // namespace cepheus::fabric
