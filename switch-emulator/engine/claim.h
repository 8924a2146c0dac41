// Finds the turn of a packet: admits a new source, holds the gate before it, and numbers its
// packets.
//
// A turn is one source's run of messages, named by (source IP, base). The kind of its path
// determines how data of a new turn is recognised (docs/protocol.md, "Changing the source"):
//   a host under rebasing    its next send PSN is S+T, whatever arrives first
//   a switch                 its packets are tagged with the turn's name
//   otherwise                the next PSN after `sent`, from another path (host PSN
//                            synchronisation)
#pragma once

#include "switch-emulator/engine/bridging.h"

namespace cepheus::fabric {

struct Call;

enum class Claim : std::uint8_t {
  kCurrent,  // belongs to the current turn, which may have begun with it
  kHandled,  // held by the gate, answered or dropped, and counted
};

// Finds the turn of `packet`; admits a newcomer if the gate is open.
Claim claim_turn(Call& call, OneSource& group, const GroupPacket& packet);

// Whether a newcomer may begin. With the rule on, only after all answers to the last turn,
// including the newcomer's own. A newcomer that breaks rule C1 lacks packets that its data would
// acknowledge, and the old source would complete a message that one member never got.
bool gate_is_open(const Call& call, const OneSource& group);

// Adds a packet to the gate, or answers RNR(first). `first` is the newcomer's first PSN in the
// numbering of its port, `turn` its turn's name.
Claim hold_at_gate(Call& call, OneSource& group, const GroupPacket& packet, const TurnName& turn,
                   Psn first);

// Drops the frames that the gate holds, which arrived by `port`.
void empty_gate(Call& call, OneSource& group, PortId port);

// Parts that all three ways share.

// The turn's name in `packet`, which packets between switches carry. Packets of hosts have none.
TurnName name_of(const GroupPacket& packet);
// Admits the newcomer at `path`; its packets begin at `first`.
void admit(Call& call, OneSource& group, PathNo newcomer, Ipv4 source_ip, Psn first,
           Psn port_first);
// A packet of an earlier turn: its sender has lost the last answer. The answer never has a larger
// PSN than the packet: a NIC believes an ACK for more than it sent.
Claim answer_old_duplicate(Call& call, const OneSource& group, const GroupPacket& packet);
Claim drop(Call& call, Counter reason);
bool beyond_window(const Call& call, Psn expected, Psn psn);

}  // namespace cepheus::fabric
