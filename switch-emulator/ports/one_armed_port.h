// The switch's port towards one of the hosts behind a one-armed interface.
//
// The host is whoever sends with its address from the MAC address that it is bound to:
//
//   mac = "02:..."        that one
//   mac = "any"           any: nothing but the address counts
//   host on the link      the first that a frame of its came from
//   host behind a router  the router's: that of the next hop to the host, as it changes
//
// Anybody on the link may still send with both addresses of another; a switch with a port for each
// host is proof against that, and this is not. Not thread-safe.
#pragma once

#include <optional>

#include "switch-emulator/ports/access_port.h"
#include "switch-emulator/ports/frame_queues.h"
#include "switch-emulator/ports/next_hops.h"

namespace cepheus::fabric {

class OneArmedInterface;

struct OneArmedHost {
  std::size_t number = 0;  // what take_in() calls it
  wire::Ipv4 address;
  std::optional<wire::Mac> mac;  // bound to this one
  bool any_mac = false;          // bound to none
};

class OneArmedPort final : public AccessPort {
 public:
  // References outlive the port.
  OneArmedPort(OneArmedInterface& interface, FlushList& flush_list, const OneArmedHost& host);

  // Where the host's packets go. Errors as NextHops::find. Precondition: the interface's next hops
  // are known.
  wire::Result<void> open(wire::Instant now);
  void close() override;
  bool is_open() const override { return open_; }
  wire::Ipv4 host() const { return host_.address; }
  std::size_t number() const { return host_.number; }

  // For the interface: whether a frame from this MAC address is the host's, and room for it.
  bool is_bound_to(const wire::Mac& mac, wire::Instant now);
  bool has_waiting() const { return !queue_.is_empty(); }
  bool enqueue(const wire::Frame& frame);
  using AccessPort::refuse;

  bool receive(wire::Frame& frame) override;
  bool deliver(const wire::Frame& frame, SenderNo sender, wire::Instant now) override;
  void flush() override;
  bool arm() override;
  void reclaim() override;
  std::uint32_t unread() const override;
  std::optional<PortCounter> offence() const override { return std::nullopt; }

 private:
  wire::Result<void> look(wire::Instant now);

  OneArmedInterface& interface_;
  const OneArmedHost host_;
  bool open_ = false;
  NextHops::Hop hop_;
  wire::Instant next_look_{};       // at the next hop: not before
  std::optional<wire::Mac> bound_;  // on the link: the first seen
  FrameQueues::Queue queue_;
};

}  // namespace cepheus::fabric
