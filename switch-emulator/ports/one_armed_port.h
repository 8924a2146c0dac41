// The switch's port towards one of the hosts behind a one-armed interface.
//
// A frame is the host's if it has its source address and the MAC address of the binding:
//
//   mac = "02:..."        that one
//   mac = "any"           any: only the IP address counts
//   host on the link      that of its first frame
//   host behind a router  the router's: that of the next hop to the host, as it changes
//
// Any node on the link may still send with both addresses of another host. A switch with a port for
// each host prevents that, but this one does not. Not thread-safe.
#pragma once

#include <optional>

#include "switch-emulator/ports/access_port.h"
#include "switch-emulator/ports/frame_queues.h"
#include "switch-emulator/ports/next_hops.h"

namespace cepheus::fabric {

class OneArmedInterface;

struct OneArmedHost {
  std::size_t number = 0;  // its number in take_in()
  wire::Ipv4 address;
  std::optional<wire::Mac> mac;  // bound to this one
  bool any_mac = false;          // bound to none
};

class OneArmedPort final : public AccessPort {
 public:
  // References outlive the port.
  OneArmedPort(OneArmedInterface& interface, FlushList& flush_list, const OneArmedHost& host);

  // The next hop of the host's packets. Errors as NextHops::find. Precondition: the interface's
  // next hops are known.
  wire::Result<void> open(wire::Instant now);
  void close() override;
  bool is_open() const override { return open_; }
  wire::Ipv4 host() const { return host_.address; }
  std::size_t number() const { return host_.number; }

  // For the interface: whether a frame from this MAC address is the host's, and fits.
  bool is_bound_to(const wire::Mac& mac, wire::Instant now);
  bool has_waiting() const { return !queue_.is_empty(); }
  bool has_space() const;
  // Precondition: has_space().
  void enqueue(const wire::Frame& frame);
  using AccessPort::refuse;

  // Whether the next frame must not be taken now: it is data, and copies wait for the interface.
  // What is lost is lost before replication then, here, and not copy by copy. Feedback goes on.
  bool must_wait() const;
  bool receive(wire::Frame& frame) override;
  bool deliver(const wire::Frame& frame, SenderNo sender, wire::Instant now) override;
  void flush() override;
  bool arm() override;
  void reclaim() override {}
  std::uint32_t unread() const override { return 0; }
  std::uint8_t fill() const override;
  std::optional<PortCounter> offence() const override { return std::nullopt; }

 private:
  wire::Result<void> look(wire::Instant now);

  OneArmedInterface& interface_;
  const OneArmedHost host_;
  bool open_ = false;
  NextHops::Hop hop_;
  wire::Instant next_look_{};       // next request for the next hop: not before
  std::optional<wire::Mac> bound_;  // on the link: the first seen
  FrameQueues::Queue queue_;
};

}  // namespace cepheus::fabric
