// Registration over a kernel UDP socket, for devices with a network interface (rdma_rxe, hardware).
#pragma once

#include "libmcast/control_channel.h"
#include "wire/unique_fd.h"

namespace cepheus::mcast {

class KernelChannel final : public ControlChannel {
 public:
  // Bound to the device's own address, so that its datagrams have that source.
  static Expected<std::unique_ptr<KernelChannel>> open(wire::Ipv4 address, std::uint16_t mrp_port,
                                                       const PacketMarks& marks);

  int send(wire::Ipv4 to, std::span<const std::uint8_t> datagram) override;
  std::optional<Received> receive(std::span<std::uint8_t> out) override;
  std::uint16_t port() const override { return port_; }

 private:
  KernelChannel(int fd, std::uint16_t mrp_port) : fd_(fd), mrp_port_(mrp_port) {}

  const wire::UniqueFd fd_;
  const std::uint16_t mrp_port_;
  std::uint16_t port_ = 0;
};

}  // namespace cepheus::mcast
