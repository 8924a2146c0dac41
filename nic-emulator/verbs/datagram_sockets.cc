// deliver() makes six checks and counts each failure by its own counter. Their order: headers, our
// address, length, an open port, the socket's source port, space in its queue.
//
// A socket's ring is allocated when it opens, so deliver() allocates nothing. open() chooses
// ephemeral ports, from 49152 (RFC 6335). Searches are linear, as a process has few sockets.
#include "nic-emulator/verbs/datagram_sockets.h"

#include <algorithm>

namespace cepheus::verbs {

bool DatagramSocket::push(const wire::UdpDatagram& headers, std::span<const std::uint8_t> payload) {
  if (count_ == kQueue) return false;
  Datagram& slot = queue_[(first_ + count_) % kQueue];
  slot.from = headers.ip.source;
  slot.from_port = headers.udp.source_port;
  slot.size = static_cast<std::uint16_t>(payload.size());
  std::copy(payload.begin(), payload.end(), slot.data.begin());
  ++count_;
  return true;
}

void DatagramSocket::pop() {
  first_ = (first_ + 1) % kQueue;
  --count_;
}

DatagramSocket* DatagramSockets::find(std::uint16_t port) const {
  for (const auto& socket : sockets_) {
    if (socket->port() == port) return socket.get();
  }
  return nullptr;
}

// An ephemeral one (RFC 6335); 0 if all are taken.
std::uint16_t DatagramSockets::free_port() const {
  constexpr std::uint16_t kFirst = 49152;
  std::uint16_t port = kFirst;
  while (port != 0 && find(port) != nullptr) ++port;
  return port;
}

DatagramSocket* DatagramSockets::open(std::uint16_t port, std::uint16_t from_port,
                                      std::uint8_t tos) {
  if (port == 0) port = free_port();
  if (port == 0 || find(port) != nullptr) return nullptr;
  return sockets_.emplace_back(std::make_unique<DatagramSocket>(port, from_port, tos)).get();
}

void DatagramSockets::close(DatagramSocket* socket) {
  std::erase_if(sockets_, [&](const auto& each) { return each.get() == socket; });
}

void DatagramSockets::deliver(const wire::Frame& frame) {
  const auto headers = wire::UdpDatagram::parse(frame);
  if (!headers) {
    ++counters.dropped_malformed;
    return;
  }
  if (headers->ip.destination != address_) {
    ++counters.dropped_not_mine;
    return;
  }
  const auto payload = frame.payload();
  if (payload.size() > kMaxDatagram) {
    ++counters.dropped_too_long;
    return;
  }
  DatagramSocket* socket = find(headers->udp.destination_port);
  if (socket == nullptr) {
    ++counters.dropped_port_closed;
  } else if (!socket->takes_from(headers->udp.source_port)) {
    ++counters.dropped_source_port;
  } else if (!socket->push(*headers, payload)) {
    ++counters.dropped_queue_full;
  } else {
    ++counters.received;
  }
}

}  // namespace cepheus::verbs
