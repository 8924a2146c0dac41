// The messages that a switch makes of a sender group's INSTALL.
#pragma once

#include "switch-emulator/engine/mcrdma/sender_table.h"
#include "switch-emulator/engine/routes.h"

namespace cepheus::fabric {

// A message to a sender about its group.
wire::SenderGroupMessage message_to_sender(const wire::SenderGroupMessage& installed,
                                           wire::MrpType type);

// The message to the receivers of one branch.
wire::SenderGroupMessage part_of(const SwitchConfig& config, const SenderGroup& group,
                                 const Branch& branch, wire::MrpType type);

// Receivers are valid if they are not the sender and have a real queue pair.
bool is_well_formed(const wire::SenderGroupMessage& message);

// Whether both are about one queue pair of one program. Equal virtual QPNs are not enough: another
// program may have chosen the same number for another group.
bool is_one_group(const wire::SenderGroupMessage& a, const wire::SenderGroupMessage& b);

// Adds the member, unless the list has its host.
void add_host(std::vector<wire::MrpMember>& to, const wire::MrpMember& member);

// An INSTALL that finds the least path MTU, before any receiver connects.
bool measures(const wire::SenderGroupMessage& message);

// Lowers its path MTU to that of all ports on the ways to its sender and its receivers. Ports that are
// down count, too: routes may come back to them, and the queue pairs keep their path MTU.
void narrow_path(const SwitchConfig& config, const Routes& routes,
                 wire::SenderGroupMessage& install);

// The first receiver of an INSTALL that its path MTU is too large for: a port that serves the
// receiver takes only shorter packets. Null: there is none, or the INSTALL has no path MTU yet.
const wire::MrpMember* find_behind_small_port(const SwitchConfig& config, const Routes& routes,
                                              const wire::SenderGroupMessage& install,
                                              PortId ingress);

}  // namespace cepheus::fabric
