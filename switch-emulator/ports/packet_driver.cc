#include "switch-emulator/ports/packet_driver.h"

namespace cepheus::fabric {

wire::Result<std::unique_ptr<InterfaceDriver>> PacketDriver::open(const std::string& interface,
                                                                  std::uint32_t largest_frame) {
  auto socket = PacketSocket::open(interface, largest_frame, PacketSocket::Hears::kOwnIpv4);
  if (!socket) return tl::unexpected(socket.error());
  return std::unique_ptr<InterfaceDriver>(new PacketDriver(std::move(*socket)));
}

std::optional<PortCounter> PacketDriver::send(const wire::Frame& frame, const wire::Mac& from,
                                              const wire::Mac& to) {
  const auto out = socket_->send_buffer();
  if (out.empty()) return PortCounter::kDropEgressFull;
  const std::size_t length = frame.to_bytes(out);
  if (length == 0) return PortCounter::kDropOversize;
  set_macs(out, from, to);
  socket_->push(static_cast<std::uint32_t>(length));
  return std::nullopt;
}

}  // namespace cepheus::fabric
