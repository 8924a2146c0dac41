// Limits the rate of a host's requests of one kind: a rate with a burst, by the virtual scheduling of
// ITU-T I.371's GCRA.
//
// Each admitted request reserves one interval. A host with reservations further ahead than the burst
// has to wait: its request is dropped, and its sender repeats it.
#pragma once

#include <algorithm>
#include <vector>

#include "switch-emulator/engine/switch.h"

namespace cepheus::fabric {

class HostRate {
 public:
  // The burst is the number of requests in this time.
  static constexpr Duration kBurst = std::chrono::milliseconds(250);

  // `rate`: the setting, in requests a second of one host; 0: none.
  HostRate(const SwitchConfig& config, std::uint32_t SwitchConfig::*rate)
      : config_(config), rate_(rate), reserved_(config.ports.size()) {
    for (std::size_t port = 0; port < reserved_.size(); ++port) {
      is_host_.push_back(config.ports[port].kind == PortKind::kHost);
    }
  }

  // False: drop it. A request over a trunk was admitted at its host's switch. `least`: the rate is at
  // least this.
  bool admit(PortId port, Instant now, std::uint32_t least = 0) {
    if (!is_host_[port.value()]) return true;
    const std::uint32_t rate = std::max(config_.*rate_, least);
    if (rate == 0) return false;
    Instant& until = reserved_[port.value()];
    if (until > now + kBurst) return false;
    until = std::max(until, now) + Duration(std::chrono::seconds(1)) / rate;
    return true;
  }

 private:
  const SwitchConfig& config_;
  std::uint32_t SwitchConfig::*const rate_;
  std::vector<Instant> reserved_;  // by port: end of the reservations
  std::vector<bool> is_host_;
};

}  // namespace cepheus::fabric
