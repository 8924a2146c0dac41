// Limits the rate at which the host behind a port registers new groups: a rate with a burst, by the
// virtual scheduling of ITU-T I.371's GCRA.
//
// Each admitted REGISTER reserves one interval. A host with reservations further ahead than the
// burst has to wait: its REGISTER is dropped, and its leader repeats it.
#pragma once

#include <algorithm>
#include <vector>

#include "switch-emulator/engine/switch.h"

namespace cepheus::fabric {

class RegisterRate {
 public:
  // The burst is the number of requests in this time.
  static constexpr Duration kBurst = std::chrono::milliseconds(250);

  explicit RegisterRate(const SwitchConfig& config)
      : config_(config), reserved_(config.ports.size()) {
    for (std::size_t port = 0; port < reserved_.size(); ++port) {
      is_host_.push_back(config.ports[port].kind == PortKind::kHost);
    }
  }

  // False: drop it. A request over a trunk was admitted at its host's switch.
  bool admit(PortId port, Instant now) {
    if (!is_host_[port.value()]) return true;
    Instant& until = reserved_[port.value()];
    if (until > now + kBurst) return false;
    until = std::max(until, now) + interval();
    return true;
  }

 private:
  Duration interval() const {
    return Duration(std::chrono::seconds(1)) / std::max(1u, config_.register_rate);
  }

  const SwitchConfig& config_;
  std::vector<Instant> reserved_;  // by port: end of the reservations
  std::vector<bool> is_host_;
};

}  // namespace cepheus::fabric
