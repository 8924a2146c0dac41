// The messages that a switch makes of a sender group's INSTALL.
#pragma once

#include <span>

#include "switch-emulator/engine/mcrdma/sender_table.h"

namespace cepheus::fabric {

// A message to a sender about its group.
wire::SenderGroupMessage message_to_sender(const wire::SenderGroupMessage& installed,
                                           wire::MrpType type);

// The message to the receivers of one branch.
wire::SenderGroupMessage part_of(const SwitchConfig& config, const SenderGroup& group,
                                 const Branch& branch, wire::MrpType type);

// An INSTALL that finds the least path MTU, before any receiver connects.
bool measures(const wire::SenderGroupMessage& message);

// Lowers its path MTU to that of the ports on the sender's side and on the receivers'.
void narrow_path(const SwitchConfig& config, PortId ingress, std::span<const PortId> out,
                 wire::SenderGroupMessage& install);

}  // namespace cepheus::fabric
