// The C functions over LiveNic's sockets. An open socket holds the NIC, so the program may close
// its device first.
//
// Errors beyond the header's: open refuses RoCE's own port with EINVAL, and a forked child's device
// with ENODEV. Send returns ENETDOWN once the fabric has ended. A datagram longer than the caller's
// buffer is truncated. cepheus_roce_counters attaches nothing: without a NIC its text is empty.
#include "nic-emulator/verbs/datagram.h"

#include <algorithm>

#include "nic-emulator/verbs/device/context.h"

struct cepheus_datagram_socket {
  std::shared_ptr<cepheus::verbs::LiveNic> nic;
  cepheus::verbs::DatagramSocket* socket;
};

using namespace cepheus::verbs;
namespace wire = cepheus::wire;

CEPHEUS_EXPORT int cepheus_datagram_open(ibv_context* context, uint16_t udp_port,
                                         uint16_t from_port, uint8_t tos,
                                         cepheus_datagram_socket** out) {
  *out = nullptr;
  if (!is_ours(context)) return EOPNOTSUPP;
  return guarded([&] {
    std::shared_ptr<LiveNic> nic = Context::of(context).share_nic();
    if (nic->is_abandoned()) return ENODEV;
    if (udp_port == wire::kRoceUdpPort) return EINVAL;
    auto opened = std::make_unique<cepheus_datagram_socket>();
    opened->socket = nic->open_socket(udp_port, from_port, tos);
    if (opened->socket == nullptr) return EADDRINUSE;
    opened->nic = std::move(nic);
    *out = opened.release();
    return 0;
  });
}

CEPHEUS_EXPORT uint16_t cepheus_datagram_port(const cepheus_datagram_socket* s) {
  return s->socket->port();
}

CEPHEUS_EXPORT int cepheus_datagram_send(cepheus_datagram_socket* s, uint32_t to_ipv4,
                                         uint16_t to_port, const void* data, size_t size) {
  return guarded([&] {
    const std::span bytes(static_cast<const std::uint8_t*>(data), size);
    const auto sent = s->nic->send_datagram(*s->socket, wire::Ipv4(to_ipv4), to_port, bytes);
    if (sent) return 0;
    switch (sent.error().code) {
      case wire::ErrorCode::kInvalid:
        return EMSGSIZE;
      case wire::ErrorCode::kAgain:
        return EAGAIN;
      default:
        return ENETDOWN;
    }
  });
}

CEPHEUS_EXPORT ssize_t cepheus_datagram_recv(cepheus_datagram_socket* s, void* data,
                                             size_t capacity, uint32_t* from_ipv4,
                                             uint16_t* from_port) {
  ssize_t size = -1;
  const int error = guarded([&] {
    const bool received = s->nic->receive_datagram(*s->socket, [&](const Datagram& datagram) {
      const std::size_t n = std::min<std::size_t>(datagram.size, capacity);
      std::copy_n(datagram.data.begin(), n, static_cast<std::uint8_t*>(data));
      if (from_ipv4 != nullptr) *from_ipv4 = datagram.from.value();
      if (from_port != nullptr) *from_port = datagram.from_port;
      size = static_cast<ssize_t>(n);
    });
    return received ? 0 : EAGAIN;
  });
  if (error != 0) errno = error;
  return size;
}

CEPHEUS_EXPORT void cepheus_datagram_close(cepheus_datagram_socket* s) {
  if (s == nullptr) return;
  const Uncancelled uncancelled;
  s->nic->close_socket(s->socket);
  release_nic(std::move(s->nic));
  delete s;
}

// "name value\n" for each counter of this process's NIC; returns the length of the whole text.
CEPHEUS_EXPORT size_t cepheus_roce_counters(char* buffer, size_t size) {
  std::size_t length = 0;
  guarded([&] {
    std::shared_ptr<LiveNic> nic = current_nic();
    const std::string text = nic ? nic->counters_text() : std::string();
    release_nic(std::move(nic));  // the program may have closed its device meanwhile
    length = text.size();
    if (size > 0) {
      const std::size_t n = std::min(length, size - 1);
      std::copy_n(text.begin(), n, buffer);
      buffer[n] = '\0';
    }
    return 0;
  });
  return length;
}
