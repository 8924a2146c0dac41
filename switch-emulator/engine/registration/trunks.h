// Whether the neighbouring switches are alive, and the switches that they can't reach
// (docs/protocol.md, "Trunks that fail").
//
//     kUp -- cable cut, kHellosMissed HELLOs without an answer, or "I don't hear you" --> kDark
//      ^                                                                                    |
//      +--------- as many HELLOs in a row, and the other end hears this one ----------------+
//
// Each end sends a HELLO every `hello`, and at once when its reachable switches have changed. Any
// frame from the far end shows that it is alive. Missed are HELLOs that this end has sent, not the
// time: a switch that did not run for a while has missed none.
#pragma once

#include <utility>
#include <vector>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/routes.h"
#include "wire/hello.h"
#include "wire/roce.h"

namespace cepheus::fabric {

class Trunks {
 public:
  struct TrunkChange {
    PortId port;
    bool up;
  };

  Trunks(const SwitchConfig& config, Routes& routes);

  // A frame has arrived from `port`.
  void on_frame(PortId port) {
    if (const std::size_t at = index_[port.value()]; at != kNone) trunks_[at].missed = 0;
  }
  // A HELLO from the far end.
  void on_datagram(Call& call, const Frame& frame, const wire::UdpHeaders& headers);
  // The cable was cut or repaired. A trunk with a whole cable is up until it is silent.
  void on_port(Call& call, PortId port, bool up);
  void on_timer(Call& call);
  Instant deadline() const { return trunks_.empty() ? wire::kNever : next_; }

  // Trunks that went dark or came back since the last call. `routes` knows already; groups do not.
  bool take(TrunkChange& change);
  // Whether a neighbour has gained or lost a route since the last call.
  bool take_withdrawals() { return std::exchange(has_withdrawals_, false); }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Trunk {
    PortId port;
    bool is_whole = true;  // the cable
    bool is_up = true;
    bool receives = true;           // frames arrive here
    bool is_received = true;        // according to the far end
    unsigned missed = 0;            // HELLOs sent since the last frame from there
    unsigned in_a_row = 0;          // HELLOs received while it was dark
    std::uint32_t stamp = 0;        // of the newest list
    std::uint16_t next_part = 0;    // ... of it
    std::vector<Ipv4> coming;       // of a list with more parts to come
    std::vector<Ipv4> unreachable;  // according to the far end
  };

  void judge(Call& call, Trunk& trunk);
  void announce(Call& call, bool changed_only);
  void send(Call& call, const Trunk& trunk);
  Trunk& at(PortId port) { return trunks_[index_[port.value()]]; }

  Routes& routes_;
  std::vector<std::size_t> index_;  // of a port's trunk
  std::vector<Trunk> trunks_;
  std::vector<TrunkChange> changes_;
  bool has_withdrawals_ = false;            // not yet taken
  std::vector<Ipv4> unreachable_, before_;  // from here
  std::int64_t stamp_ = 0;                  // of the last list sent
  Instant next_{};
};

}  // namespace cepheus::fabric
