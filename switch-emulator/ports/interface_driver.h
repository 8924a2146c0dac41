// What moves a one-armed interface's frames: the kernel's packet sockets (packet_driver.h), or DPDK
// where it is built in (dpdk_driver.h).
//
// As PacketSocket: received frames are read where they lie, one after the other; frames to be sent
// gather until kick(). Not thread-safe.
#pragma once

#include <algorithm>
#include <optional>

#include "switch-emulator/ports/access_port.h"
#include "switch-emulator/ports/packet_socket.h"

namespace cepheus::fabric {

class InterfaceDriver {
 public:
  virtual ~InterfaceDriver() = default;

  // As PacketSocket's; -1: nothing tells of frames that come, and next() is to be asked all the time.
  virtual int fd() const = 0;
  virtual void clear_error() = 0;

  virtual std::optional<PacketSocket::Received> next() = 0;
  virtual void release() = 0;
  virtual bool has_received() const = 0;
  virtual std::uint32_t take_dropped() = 0;

  // Puts a frame among those to be sent, between these MAC addresses. Why it can't, or nothing.
  // A payload of a pool is not copied if the driver can do without: then it holds a reference.
  virtual std::optional<PortCounter> send(const wire::Frame& frame, const wire::Mac& from,
                                          const wire::Mac& to) = 0;
  virtual std::uint32_t kick() = 0;
  virtual bool has_pushed() const = 0;
  virtual bool is_pending() const = 0;
};

// `bytes` begin with an Ethernet header.
inline void set_macs(std::span<std::uint8_t> bytes, const wire::Mac& from, const wire::Mac& to) {
  std::copy(to.octets.begin(), to.octets.end(), bytes.begin());
  std::copy(from.octets.begin(), from.octets.end(), bytes.begin() + to.octets.size());
}

}  // namespace cepheus::fabric
