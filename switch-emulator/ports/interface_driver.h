// Moves a one-armed interface's frames: by the kernel's packet sockets (packet_socket.h), or by
// DPDK if it is built in (dpdk_driver.h).
//
// Received frames are read in place, one after the other; frames to be sent gather until kick().
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "switch-emulator/ports/access_port.h"
#include "wire/ecn.h"
#include "wire/roce.h"

namespace cepheus::fabric {

class InterfaceDriver {
 public:
  struct Received {
    std::span<std::uint8_t> bytes;  // from the Ethernet header on; valid until release()
    bool checksum_missing = false;  // TCP's or UDP's: left to hardware that is not there
    bool truncated = false;
    std::uint16_t vlan_tag = wire::Frame::kUntagged;  // the one that was removed
    bool losing = false;  // the ring was full before: see take_dropped()
  };

  virtual ~InterfaceDriver() = default;

  // Readable when a frame has arrived while the ring was empty; -1: there is no such event, so
  // next() must be polled.
  virtual int fd() const = 0;
  // Takes the error that fd() reports, so that waiting works again.
  virtual void clear_error() = 0;

  virtual std::optional<Received> next() = 0;
  virtual void release() = 0;
  virtual bool has_received() const = 0;
  // Frames dropped since the last call, because the ring was full.
  virtual std::uint32_t take_dropped() = 0;

  // Queues a frame to be sent between these MAC addresses. Returns the reason if it can't. Does not
  // copy a pool's payload if the driver can avoid it: then it holds a reference.
  virtual std::optional<PortCounter> send(const wire::Frame& frame, const wire::Mac& from,
                                          const wire::Mac& to) = 0;
  // Sends the queued frames. Frames without room stay: is_pending() reports them, and kick() tries
  // again. Returns the number of frames that were dropped because the interface is down.
  virtual std::uint32_t kick() = 0;
  virtual bool has_pushed() const = 0;
  virtual bool is_pending() const = 0;
  // Whether a quarter of the ring to be sent is full: a sender with congestion control slows down
  // before the ring is full.
  virtual bool is_filling() const = 0;
  // Percent of that ring that is full. A driver that only knows is_filling() answers 25 for a quarter
  // or more. For occasional use.
  virtual std::uint8_t fill() const { return is_filling() ? 25 : 0; }
};

// Whether its sender has congestion control, and so wants a mark if it has to wait (RFC 3168).
inline bool is_ecn_capable(const wire::Frame& frame) {
  return frame.icrc_state != wire::Icrc::kNone &&
         wire::ecn_of(frame.bytes[wire::kIpOffset + 1]) != wire::Ecn::kNotCapable;
}
// A marked copy of a frame. Precondition: is_ecn_capable().
inline wire::Frame marked(const wire::Frame& frame) {
  wire::Frame copy = frame;
  wire::mark_congestion(copy.header().subspan<wire::kIpOffset, wire::Ipv4Header::kSize>());
  return copy;
}

// `bytes` begin with an Ethernet header.
inline void set_macs(std::span<std::uint8_t> bytes, const wire::Mac& from, const wire::Mac& to) {
  std::copy(to.octets.begin(), to.octets.end(), bytes.begin());
  std::copy(from.octets.begin(), from.octets.end(), bytes.begin() + to.octets.size());
}

}  // namespace cepheus::fabric
