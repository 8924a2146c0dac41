// Sends and receives registration (MRP) datagrams of this host: by kernel UDP sockets, or by an
// emulated NIC, which has no kernel interface. They have the DSCP and the priority of the groups'
// data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "libmcast/device.h"
#include "wire/mrp.h"

namespace cepheus::mcast {

class ControlChannel {
 public:
  virtual ~ControlChannel() = default;

  // 0, or an errno. A datagram that could not be sent is as good as lost: registration repeats it.
  virtual int send(wire::Ipv4 to, std::span<const std::uint8_t> datagram) = 0;
  // The next datagram and its sender. Empty if none has arrived. Never blocks.
  struct Received {
    wire::Ipv4 from;
    std::size_t size;
  };
  // Drops datagrams from other ports than the registration port: no switch has seen them.
  virtual std::optional<Received> receive(std::span<std::uint8_t> out) = 0;
  // This process's own UDP port, to which the host's switch sends its messages.
  virtual std::uint16_t port() const = 0;
  // The NIC runs in this process, so received data is in memory in the order of the program's own
  // stores.
  virtual bool stores_in_process() const { return false; }

  // The channel for the device, on a UDP port of its own; `mrp_port` is the switches'.
  static Expected<std::unique_ptr<ControlChannel>> open(const Device& device,
                                                        std::uint16_t mrp_port);
};

inline constexpr std::size_t kMaxDatagram = wire::MrpMessage::kMaxDatagram;

}  // namespace cepheus::mcast
