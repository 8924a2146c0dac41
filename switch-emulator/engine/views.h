// What an administrator sees of a group, and what its table costs.
#pragma once

#include "switch-emulator/engine/mcrdma/sender_table.h"
#include "switch-emulator/engine/mft.h"

namespace cepheus::fabric {

GroupView view_of(const SwitchConfig& config, const Group& group, Ipv4 leader, bool active);
SenderGroupView view_of(const SenderGroup& group);

// What is not a named field (padding, and vectors' own pointers) is a row of its own, so that the
// rows add up.
TableBytes bytes_of(const Group& group);
// ... if it had `paths` paths, to the highest of `ports` ports.
TableBytes bytes_of_paths(std::size_t ports, std::size_t paths);

}  // namespace cepheus::fabric
