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
#include "switch-emulator/engine/mft.h"

namespace cepheus::fabric {

struct Call;

// A group data packet as it came in.
struct DataPacket {
  const Frame& frame;
  const wire::RoceHeaders& headers;
  PathNo path;

  Psn psn() const { return headers.bth.psn; }  // in the numbering of its port
};

enum class Claim : std::uint8_t {
  kCurrent,  // belongs to the current turn, which may have begun with it
  kHeld,     // kept by the gate
  kSettled,  // answered or dropped, and counted
};

// Settles whose turn `packet` belongs to; admits a newcomer if the gate is open.
Claim claim_turn(Call& call, Group& group, const DataPacket& packet);

// May a newcomer begin? With the rule on, once the turn is settled: all answers to the last turn
// must be in, the newcomer's own, too: one that breaks rule C1 lacks what it would be taken to
// have, and the old source would complete what one member never got.
bool gate_is_open(const Call& call, const Group& group);

// Adds a packet to what the gate holds, or answers RNR(first). `first` is the newcomer's first PSN
// in the numbering of its port, `turn` the name it goes by.
Claim hold_at_gate(Call& call, Group& group, const DataPacket& packet, const TurnName& turn,
                   Psn first);

}  // namespace cepheus::fabric
