// The driver that moves a one-armed interface's frames: the kernel's packet sockets
// (packet_socket.h), or DPDK where it is built in (dpdk_driver.h).
//
// Received frames are read where they lie, one after the other; frames to be sent gather until
// kick(). Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "switch-emulator/ports/access_port.h"

namespace cepheus::fabric {

class InterfaceDriver {
 public:
  struct Received {
    std::span<std::uint8_t> bytes;  // from the Ethernet header on; ours until release()
    bool checksum_missing = false;  // TCP's or UDP's: left to hardware that is not there
    bool truncated = false;
    bool tagged = false;  // a VLAN tag was taken out
    bool losing = false;  // the ring was full before: see take_dropped()
  };

  virtual ~InterfaceDriver() = default;

  // Readable when a frame has come while the ring was empty; -1: nothing tells of frames that come,
  // and next() is to be asked all the time.
  virtual int fd() const = 0;
  // Takes the error that fd() reports, so that waiting works again.
  virtual void clear_error() = 0;

  virtual std::optional<Received> next() = 0;
  virtual void release() = 0;
  virtual bool has_received() const = 0;
  // Frames dropped since the last call, because the ring was full.
  virtual std::uint32_t take_dropped() = 0;

  // Puts a frame among those to be sent, between these MAC addresses. Why it can't, or nothing.
  // A payload of a pool is not copied if the driver can do without: then it holds a reference.
  virtual std::optional<PortCounter> send(const wire::Frame& frame, const wire::Mac& from,
                                          const wire::Mac& to) = 0;
  // Sends them. Frames without room stay: is_pending() says so, and kick() tries again.
  // Returns the frames that were thrown away because the interface is down.
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
