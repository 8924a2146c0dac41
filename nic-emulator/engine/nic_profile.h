// Makes of NICs and their manners, as data: the simulator's campaigns and experiments, the live
// emulated NIC (CEPHEUS_NIC_PROFILE) and unit tests take them from here (docs/protocol.md, "Where
// NICs differ on the wire").
#pragma once

#include <span>
#include <string_view>

#include "nic-emulator/engine/nic.h"

namespace cepheus::rnic {

struct NicProfile {
  std::string_view name;
  std::string_view manners;  // what differs from the emulated NIC, one line
  std::string_view source;   // where that is known from
  void (*apply)(NicConfig& config);
};

// All profiles. The first one is the emulated NIC itself, which changes nothing.
std::span<const NicProfile> nic_profiles();
// Null: no profile has this name.
const NicProfile* find_nic_profile(std::string_view name);

}  // namespace cepheus::rnic
