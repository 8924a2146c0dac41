// Registration through an emulated NIC, by datagram calls that its library exports. They are found
// at run time, so that libmcast needs only libibverbs, and runs on other devices, too.
#pragma once

#include <sys/types.h>

#include "libmcast/control_channel.h"

struct cepheus_datagram_socket;

namespace cepheus::mcast {

class RoceChannel final : public ControlChannel {
 public:
  // Null if the device is not the emulated NIC's: use kernel sockets.
  static Expected<std::unique_ptr<RoceChannel>> open(ibv_context* context, std::uint16_t mrp_port,
                                                     const PacketMarks& marks);
  ~RoceChannel() override;
  RoceChannel(const RoceChannel&) = delete;
  RoceChannel& operator=(const RoceChannel&) = delete;

  int send(wire::Ipv4 to, std::span<const std::uint8_t> datagram) override;
  std::optional<Received> receive(std::span<std::uint8_t> out) override;
  std::uint16_t port() const override { return calls_.port(socket_); }
  bool stores_in_process() const override { return true; }

 private:
  // The library's functions; addresses and ports in host byte order, errors as errno, nothing
  // blocks.
  struct Calls {
    int (*open)(ibv_context*, std::uint16_t port, std::uint16_t from_port, std::uint8_t tos,
                cepheus_datagram_socket** out);
    std::uint16_t (*port)(const cepheus_datagram_socket*);
    int (*send)(cepheus_datagram_socket*, std::uint32_t to, std::uint16_t port, const void* data,
                std::size_t size);
    ssize_t (*recv)(cepheus_datagram_socket*, void* data, std::size_t capacity, std::uint32_t* from,
                    std::uint16_t* from_port);
    void (*close)(cepheus_datagram_socket*);
  };

  RoceChannel(const Calls& calls, cepheus_datagram_socket* socket, std::uint16_t mrp_port)
      : calls_(calls), socket_(socket), mrp_port_(mrp_port) {}
  static std::optional<Calls> find_calls();

  const Calls calls_;
  cepheus_datagram_socket* const socket_;
  const std::uint16_t mrp_port_;
};

}  // namespace cepheus::mcast
