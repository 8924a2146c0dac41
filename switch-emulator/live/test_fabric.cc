#include "switch-emulator/live/test_fabric.h"

#include <sys/eventfd.h>
#include <sys/un.h>

#include <cstring>

#include "wire/icrc.h"
#include "wire/test_bytes.h"

namespace cepheus::live {
namespace {

// Puts the payload into the frame if it fits, else into the port's next slot.
void set_payload(fabric::HostPort& port, std::span<const std::uint8_t> payload,
                 wire::Frame& frame) {
  if (frame.payload_fits_inline(payload.size())) return frame.set_inline_payload(payload);
  const auto slot = port.tx_buffer();
  if (slot.size() < payload.size()) throw std::runtime_error("no payload slot");
  std::memcpy(slot.data(), payload.data(), payload.size());
  frame.set_external_payload(slot.first(payload.size()), wire::kNoBuffer);
}

}  // namespace

fabric::UniqueFd connect_to(const std::string& socket, int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.copy(address.sun_path, sizeof address.sun_path - 1);
  fabric::UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("can't connect to " + socket);
  }
  return fd;
}

std::optional<fabric::Message> await_message(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  if (poll(&waiting, 1, 20'000) != 1) return std::nullopt;
  return fabric::receive_message(fd);
}

RawClient::RawClient(const std::string& socket, const std::string& host)
    : socket_(connect_to(socket)) {
  if (!fabric::send_message(socket_.get(),
                            encode(fabric::AttachRequest{fabric::kHandshakeVersion, host}))) {
    throw std::runtime_error("the fabric takes no hello");
  }
  auto answer = await_message(socket_.get());
  const auto welcome = answer ? fabric::decode_welcome(answer->data) : std::nullopt;
  if (!welcome || answer->fds.size() != fabric::kGrantedFds)
    throw std::runtime_error("no port granted");
  granted_ = std::move(*answer);
  identity_ = welcome->identity;
  auto segment = fabric::PortSegment::map(granted_.fds[fabric::kSegmentFd].get(),
                                          welcome->pool.slots_per_area);
  if (!segment) throw std::runtime_error(segment.error().text);
  segment_ = std::move(*segment);
}

void RawClient::ring_doorbell() const {
  eventfd_write(granted_.fds[fabric::kSwitchDoorbellFd].get(), 1);
}

void send_packet(fabric::HostPort& port, const Packet& packet) {
  if (!await_space(port, packet.payload_bytes)) throw std::runtime_error("no room to send");
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

void send_mrp(fabric::HostPort& port, const wire::MrpMessage& message) {
  const auto bytes = wire::bytes_of(message);
  if (!await_space(port, bytes.size())) throw std::runtime_error("no room to send");
  wire::UdpDatagram datagram;
  datagram.ethernet.source = port.identity().mac;
  datagram.ethernet.destination = port.identity().gateway;
  datagram.ip.source = port.identity().address;
  datagram.ip.destination = message.header.mcst_id;
  datagram.udp.source_port = 40000;
  datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
  wire::Frame frame;
  datagram.emit(frame, bytes);
  if (frame.external != nullptr) set_payload(port, bytes, frame);
  port.send(frame);
  port.flush();
}

}  // namespace cepheus::live
