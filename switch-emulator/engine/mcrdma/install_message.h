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

}  // namespace cepheus::fabric
