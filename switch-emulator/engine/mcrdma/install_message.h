// The messages that a switch makes of a sender group's INSTALL.
#pragma once

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

// The least path MTU so far, and through the ports of the branch and of the sender's side.
std::uint16_t least_mtu_of(const SwitchConfig& config, const SenderGroup& group,
                           const Branch& branch);

}  // namespace cepheus::fabric
