// A switch's buffer for waiting frames, counted by ingress port, and the decision which neighbours
// to pause. Each port has a share of it (wire/share.h), as in data centres' switches.
//
//   +-----------+------------------------------------------+-----------------------+
//   | reserves  |                shared                    |       headroom        |
//   | of ports  |  one port: share * what is free of it    |  of ports, by cable   |
//   +-----------+------------------------------------------+-----------------------+
//
// A port is paused when it has used its reserve and its share; frames that were already on the way
// go into its headroom. It resumes when its headroom is empty and its share has some room again.
// This class only counts: the caller sends the pause frames.
#pragma once

#include <vector>

#include "wire/types.h"

namespace cepheus::net {

struct BufferConfig {
  wire::Bytes bytes = 0;           // 0: by the switch's links
  double share = 1.0 / 8;          // a port's share of the free part
  wire::Bytes reserve = 4'096;     // of each lossless port
  wire::Bytes hysteresis = 3'072;  // a paused port resumes this far below its share
  bool group_halt = false;  // a group with a paused port waits at its ingress (net/group_halt.h)
  bool operator==(const BufferConfig&) const = default;
};

class SharedBuffer {
 public:
  // `headroom` by port; 0: the port is lossy and does not count. Precondition: config.bytes covers
  // reserves and headrooms.
  SharedBuffer(const BufferConfig& config, const std::vector<wire::Bytes>& headroom);

  bool is_lossless(wire::PortId port) const { return at(port).headroom != 0; }
  // Whether a frame from that port fits. Precondition here and below: the port is lossless.
  bool has_space(wire::PortId port, wire::Bytes bytes) const;
  // Precondition: has_space(port, bytes).
  void take(wire::PortId port, wire::Bytes bytes);
  void release(wire::PortId port, wire::Bytes bytes);
  // Whether its neighbour should be paused now: from the threshold up, until well below it.
  bool wants_pause(wire::PortId port) const;
  bool is_paused(wire::PortId port) const { return at(port).paused; }
  void set_paused(wire::PortId port, bool paused) { at(port).paused = paused; }

  wire::Bytes used() const { return used_; }
  wire::Bytes used(wire::PortId port) const { return at(port).used + at(port).in_headroom; }
  // Bytes of the shared part that a port may hold at this moment.
  wire::Bytes threshold() const;
  void check_consistent() const;  // asserts that the totals are the sums over the ports

 private:
  struct Port {
    wire::Bytes headroom = 0;
    wire::Bytes used = 0;  // its reserve first, then the shared part
    wire::Bytes in_headroom = 0;
    bool paused = false;
  };
  wire::Bytes shared_of(const Port& port) const {
    return port.used > config_.reserve ? port.used - config_.reserve : 0;
  }
  bool fits(const Port& port, wire::Bytes bytes) const;
  Port& at(wire::PortId port) { return ports_[port.value()]; }
  const Port& at(wire::PortId port) const { return ports_[port.value()]; }

  const BufferConfig config_;
  wire::Bytes shared_ = 0;  // of all ports together
  std::vector<Port> ports_;
  wire::Bytes shared_used_ = 0, used_ = 0;
};

}  // namespace cepheus::net
