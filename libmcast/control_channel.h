// How registration (MRP) datagrams leave and reach this host: kernel UDP sockets, or an emulated
// NIC, which has no kernel interface.
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
  // The next datagram and who sent it; empty if none has arrived. Never blocks.
  struct Received {
    wire::Ipv4 from;
    std::size_t size;
  };
  // What does not come from the registration port is left out: no switch has seen it.
  virtual std::optional<Received> receive(std::span<std::uint8_t> out) = 0;
  // This process's own UDP port, where the host's switch sends what is for it.
  virtual std::uint16_t port() const = 0;
  virtual Timers timers() const = 0;
  // The NIC is this process's own code: what it receives is stored as the program's own stores are.
  virtual bool stores_in_process() const { return false; }

  // The one that fits the device, on a UDP port of its own; `mrp_port` is the switches'.
  static Expected<std::unique_ptr<ControlChannel>> open(const Device& device,
                                                        std::uint16_t mrp_port);
};

inline constexpr std::size_t kMaxDatagram = wire::MrpMessage::kMaxDatagram;

}  // namespace cepheus::mcast
