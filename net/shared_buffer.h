// A switch's memory for what waits, counted by the port where it came in, and who is to be told to
// stop: each port has a share of it (wire/share.h), as in data centres' switches.
//
//   +-----------+------------------------------------------+-----------------------+
//   | reserves  |                shared                    |       headroom        |
//   | of ports  |  one port: share * what is free of it    |  of ports, by cable   |
//   +-----------+------------------------------------------+-----------------------+
//
// A port that has its reserve and its share is paused; what is on its way by then goes into the
// port's headroom. It goes on when its headroom is empty and its share has some room again. Pure
// accounting: what is sent to the neighbour, and when, is the caller's.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/types.h"

namespace cepheus::net {

struct BufferConfig {
  wire::Bytes bytes = 0;           // 0: by the switch's links
  double share = 1.0 / 8;          // of what is free of the shared part, a port's
  wire::Bytes reserve = 4'096;     // of each lossless port
  wire::Bytes hysteresis = 3'072;  // how far below its share a paused port goes on
  bool group_halt = false;  // a group with a paused port waits where it came in (net/group_halt.h)
  bool operator==(const BufferConfig&) const = default;
};

class SharedBuffer {
 public:
  // `headroom` by port; 0: the port is lossy and does not count. Precondition: config.bytes covers
  // reserves and headrooms.
  SharedBuffer(const BufferConfig& config, const std::vector<wire::Bytes>& headroom);

  bool is_lossless(wire::PortId port) const { return at(port).headroom != 0; }
  // Whether a frame that comes in by that port finds room. Preconditions from here on: the port is
  // lossless.
  bool has_room(wire::PortId port, wire::Bytes bytes) const;
  // Precondition: has_room(port, bytes).
  void take(wire::PortId port, wire::Bytes bytes);
  void release(wire::PortId port, wire::Bytes bytes);
  // Whether its neighbour is to be silent now: from the threshold up until well below it.
  bool wants_pause(wire::PortId port) const;
  bool is_paused(wire::PortId port) const { return at(port).paused; }
  void set_paused(wire::PortId port, bool paused) { at(port).paused = paused; }

  wire::Bytes used() const { return used_; }
  wire::Bytes used(wire::PortId port) const { return at(port).used + at(port).in_headroom; }
  wire::Bytes high_water() const { return high_water_; }
  // What a port may have of the shared part at this moment.
  wire::Bytes threshold() const;
  void check_consistent() const;  // asserts that the sums are those of the ports

 private:
  struct Port {
    wire::Bytes headroom = 0;
    wire::Bytes used = 0;  // of its reserve first, then of the shared part
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
  wire::Bytes shared_ = 0;  // of the switch, for all ports
  std::vector<Port> ports_;
  wire::Bytes shared_used_ = 0, used_ = 0, high_water_ = 0;
};

}  // namespace cepheus::net
