// Feedback of a sender group that a switch generates itself.
#pragma once

#include "switch-emulator/engine/mcrdma/sender_table.h"

namespace cepheus::fabric {

// To the sender, in its alias's name; at its own switch.
void send_answer(Call& call, const SenderGroup& group, const AckMerge::Answer& answer);
void notify(Call& call, const SenderGroup& group);  // of congestion
// In the name of the receiver `from`, by port `out`, so that the sender's switch merges it.
void send_to_merge(Call& call, const SenderGroup& group, Ipv4 from, PortId out,
                   const AckMerge::Answer& answer);

}  // namespace cepheus::fabric
