// Whose turn a packet belongs to: admitting a new source, the gate before it, and the numbering of
// its packets.
//
// A turn is one source's run of messages, named by (source IP, base). Three ways to tell that data
// belongs to a new one, by what the path can say (docs/protocol.md, "Changing the source"):
//   a host under rebasing    its next send PSN is S+T, whatever arrives first
//   a switch                 its packets are tagged with the turn's name
//   otherwise                the next PSN after `sent`, from another path (host PSN
//   synchronisation)
#pragma once

#include <optional>

#include "switch-emulator/engine/bridging.h"

namespace cepheus::fabric {

struct Call;

enum class Claim : std::uint8_t {
  kCurrent,  // belongs to the current turn, which may have begun with it
  kHandled,  // kept by the gate, answered or dropped, and counted
};

// Settles whose turn `packet` belongs to; admits a newcomer if the gate is open.
Claim claim_turn(Call& call, OneSource& group, const GroupPacket& packet);

// May a newcomer begin? With the rule on, once the turn is finished: all answers to the last turn
// must be in, the newcomer's own, too: one that breaks rule C1 lacks what it would be taken to
// have, and the old source would complete what one member never got.
bool gate_is_open(const Call& call, const OneSource& group);

// Adds a packet to what the gate holds, or answers RNR(first). `first` is the newcomer's first PSN
// in the numbering of its port, `turn` the name it goes by.
Claim hold_at_gate(Call& call, OneSource& group, const GroupPacket& packet, const TurnName& turn,
                   Psn first);

// Drops the frames that the gate holds. They came by `port`.
void empty_gate(Call& call, OneSource& group, PortId port);

// What the ways to tell share.

// The name between switches of the turn that `packet` says it belongs to. A host's packets carry
// none.
TurnName name_of(const GroupPacket& packet);
// Admits the newcomer at `path`, whose packets begin at `first`.
void admit(Call& call, OneSource& group, PathNo newcomer, Ipv4 source_ip, Psn first,
           Psn port_first);
// A packet of an earlier turn: its sender lost our last answer. Never answered with anything larger
// than itself: a NIC believes an ACK for more than it sent.
Claim answer_old_duplicate(Call& call, const OneSource& group, const GroupPacket& packet);
Claim drop(Call& call, Counter reason);
bool beyond_window(const Call& call, Psn expected, Psn psn);

}  // namespace cepheus::fabric
