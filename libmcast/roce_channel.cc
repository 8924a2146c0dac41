// open() finds the library's functions by dlsym(3). If one is missing, or the device is not the
// emulated NIC's, the result is null. The socket takes datagrams of the registration port only, and
// sends with the groups' DSCP, without ECN. No call blocks.
#include "libmcast/roce_channel.h"

#include <dlfcn.h>

#include <cerrno>

#include "wire/ecn.h"

namespace cepheus::mcast {
namespace {

template <typename Function>
bool find(Function*& out, const char* name) {
  out = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  return out != nullptr;
}

}  // namespace

std::optional<RoceChannel::Calls> RoceChannel::find_calls() {
  Calls calls{};
  const bool all =
      find(calls.open, "cepheus_datagram_open") && find(calls.port, "cepheus_datagram_port") &&
      find(calls.send, "cepheus_datagram_send") && find(calls.recv, "cepheus_datagram_recv") &&
      find(calls.close, "cepheus_datagram_close");
  return all ? std::optional(calls) : std::nullopt;
}

Expected<std::unique_ptr<RoceChannel>> RoceChannel::open(ibv_context* context,
                                                         std::uint16_t mrp_port,
                                                         const PacketMarks& marks) {
  const auto calls = find_calls();
  if (!calls) return std::unique_ptr<RoceChannel>();
  cepheus_datagram_socket* socket = nullptr;
  const int error =
      calls->open(context, 0, mrp_port, wire::without_ecn(marks.traffic_class), &socket);
  if (error == EOPNOTSUPP) return std::unique_ptr<RoceChannel>();
  if (error != 0) {
    return fail(MCAST_ERR_NO_DEVICE, errno_text("a UDP port of the emulated NIC", error));
  }
  return std::unique_ptr<RoceChannel>(new RoceChannel(*calls, socket, mrp_port));
}

RoceChannel::~RoceChannel() { calls_.close(socket_); }

int RoceChannel::send(wire::Ipv4 to, std::span<const std::uint8_t> datagram) {
  return calls_.send(socket_, to.value(), mrp_port_, datagram.data(), datagram.size());
}

std::optional<ControlChannel::Received> RoceChannel::receive(std::span<std::uint8_t> out) {
  std::uint32_t from = 0;
  std::uint16_t from_port = 0;
  const ssize_t n = calls_.recv(socket_, out.data(), out.size(), &from, &from_port);
  if (n < 0) return std::nullopt;
  return Received{wire::Ipv4(from), static_cast<std::size_t>(n)};
}

}  // namespace cepheus::mcast
