// One way out of a group's table: a member at a port of this switch, or the switch that leads on to
// some of them.
#pragma once

#include <limits>
#include <vector>

#include "switch-emulator/engine/switch.h"

namespace cepheus::fabric {

// A path's number in its table.
using PathNo = std::uint16_t;
inline constexpr PathNo kNoPath = std::numeric_limits<PathNo>::max();

// Repeats of the packet that a path needs next, since it was heard.
//
// A path lags that leaves two of them unanswered, and as long as they go on: whoever is not asked
// has nothing to answer, and a source repeats what the slowest lack. From one repeat to the next a
// source waits twice as long at most.
class Repeats {
 public:
  void note(Instant now) {
    if (seen_ > 0 && now - last_ <= gap_ / 4) return;  // doubled on its way
    if (seen_ > 0) gap_ = now - last_;
    last_ = now;
    if (seen_ < kEnough) ++seen_;
  }
  void clear() { seen_ = 0, gap_ = {}; }
  bool go_on(Instant now) const { return seen_ == kEnough && now - last_ <= 3 * gap_; }

 private:
  static constexpr std::uint8_t kEnough = 2;
  Instant last_{};
  Duration gap_{0};
  std::uint8_t seen_ = 0;
};

struct Path {
  PortId port;
  bool is_host = false;
  bool was_down = false;  // its port, and nothing was heard since: the program may be another
  bool is_back = false;   // the port is up again: what is heard now was not under way before
  Qpn qpn;                // member's, if it is a host
  Repeats unanswered;
  Ipv4 host;
  std::uint32_t heard = 0;  // feedback packets from here

  // Everything up to here has been acknowledged by all behind this path.
  Psn acked() const { return acked_; }
  // T: packets of this host's finished turns, modulo 2^24; and the messages in them, for the MSN.
  std::uint32_t turns() const { return turns_; }
  std::uint32_t messages() const { return messages_; }
  // A packet came from here.
  void hear() {
    if (is_back) was_down = is_back = false;
  }

 private:
  friend class Turn;  // alone changes these
  Psn acked_;
  std::uint32_t turns_ = 0;
  std::uint32_t messages_ = 0;
};

using Paths = std::vector<Path>;

}  // namespace cepheus::fabric
