// Makes of NICs, as data: the simulator's campaigns and experiments, the live emulated NIC
// (CEPHEUS_NIC_PROFILE) and unit tests take them from here (docs/nic-emulator.md, "Makes of NICs").
// No NIC of these makes was at hand: each entry names the source that describes it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "nic-emulator/engine/nic.h"
#include "wire/result.h"

namespace cepheus::rnic {

struct NicProfile {
  std::string_view name;
  std::string_view manners;  // what differs from the emulated NIC, one line
  std::string_view source;   // where that is known from
  // kMake: a make of NIC. kManner: one manner alone. kFatal: the same, but groups fail with it, and
  // `manners` says why.
  enum class Kind : std::uint8_t { kMake, kManner, kFatal } kind;
  void (*apply)(NicConfig& config);

  bool is_make() const { return kind == Kind::kMake; }
  bool serves_groups() const { return kind != Kind::kFatal; }
};

// All profiles. The first one is the emulated NIC itself, which changes nothing.
std::span<const NicProfile> nic_profiles();
// Null: no profile has this name.
const NicProfile* find_nic_profile(std::string_view name);
// The same. Empty: the first one. The error names all profiles.
wire::Result<const NicProfile*> require_nic_profile(std::string_view name);

}  // namespace cepheus::rnic
