// What an administrator sees of a group, and what its table costs.
#pragma once

#include "switch-emulator/engine/mft.h"

namespace cepheus::fabric {

GroupView view_of(const SwitchConfig& config, const Group& group, Ipv4 leader, bool active);

// Bytes by field of a table with `paths` paths on a switch of `ports` ports; what is not a named
// field (padding, and vectors' own pointers) is a row of its own, so that the rows add up.
std::vector<std::pair<std::string, std::size_t>> fields_of(std::size_t ports, std::size_t paths);

}  // namespace cepheus::fabric
