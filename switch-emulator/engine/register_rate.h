// How often the host behind a port may ask for another group: a rate with a burst, by the virtual
// scheduling of ITU-T I.371's GCRA.
//
// Each admitted REGISTER reserves one interval; a host whose reservations reach further ahead than
// the burst has to wait. What is dropped for it is repeated by its leader.
#pragma once

#include <algorithm>
#include <vector>

#include "switch-emulator/engine/switch.h"

namespace cepheus::fabric {

class RegisterRate {
 public:
  // As many at once as the rate brings in this time.
  static constexpr Duration kBurst = std::chrono::milliseconds(250);

  explicit RegisterRate(const SwitchConfig& config)
      : config_(config), reserved_(config.ports.size()) {
    for (std::size_t port = 0; port < reserved_.size(); ++port) {
      is_host_.push_back(config.ports[port].kind == PortKind::kHost);
    }
  }

  // False: not now. What comes over a trunk was admitted where its host is.
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
  std::vector<Instant> reserved_;  // by port: until then
  std::vector<bool> is_host_;
};

}  // namespace cepheus::fabric
