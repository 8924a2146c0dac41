// Whether the switches next to this one are there, and what they have no way to (docs/protocol.md,
// "Trunks that fail").
//
//     kUp -- cable cut, kHellosMissed HELLOs without an answer, or "I don't hear you" --> kDark
//      ^                                                                                    |
//      +--------- as many HELLOs in a row, and the other end hears this one ----------------+
//
// Each end sends a HELLO every `hello`, and at once when what it can reach has changed. Anything
// that comes from the other end shows that it is there. Missed are HELLOs that were sent, not time
// that has gone by: a switch that did not run for a while has missed none.
#pragma once

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

  // A frame has come from `port`.
  void hear(PortId port) {
    if (const std::size_t at = index_[port.value()]; at != kNone) trunks_[at].missed = 0;
  }
  // A HELLO from the other end.
  void on_datagram(Call& call, const Frame& frame, const wire::UdpHeaders& headers);
  // The cable was cut, or mended. A trunk whose cable is whole is taken for up until it is silent.
  void on_port(Call& call, PortId port, bool up);
  void on_timer(Call& call);
  Instant deadline() const { return trunks_.empty() ? wire::kNever : next_; }

  // Trunks that went dark or came back since the last call. `routes` knows already; groups do not.
  bool take(TrunkChange& change);

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Trunk {
    PortId port;
    bool is_whole = true;  // the cable
    bool is_up = true;
    bool is_heard = true;           // ... here
    bool hears_us = true;           // the other end says
    unsigned missed = 0;            // HELLOs sent since something came from there
    unsigned in_a_row = 0;          // HELLOs that came while it was dark
    std::uint32_t stamp = 0;        // of the newest list
    std::uint16_t next_part = 0;    // ... of it
    std::vector<Ipv4> coming;       // of a list whose first parts have come
    std::vector<Ipv4> unreachable;  // from the other end
  };

  void judge(Call& call, Trunk& trunk);
  void announce(Call& call, bool changed_only);
  void send(Call& call, const Trunk& trunk);
  Trunk& at(PortId port) { return trunks_[index_[port.value()]]; }

  Routes& routes_;
  std::vector<std::size_t> index_;  // of a port's trunk
  std::vector<Trunk> trunks_;
  std::vector<TrunkChange> changes_;
  std::vector<Ipv4> unreachable_, before_;  // from here
  std::int64_t stamp_ = 0;                  // of the list that was sent last
  Instant next_{};
};

}  // namespace cepheus::fabric
