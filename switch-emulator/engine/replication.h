// Group data: one copy to every path that lacks it (paper III-B 2, III-D "filtering retransmitted
// packets").
#pragma once

#include "switch-emulator/engine/claim.h"

namespace cepheus::fabric {

// Handles data of an active group; the frame's ICRC has been checked. What becomes of RDMA WRITEs is
// the group's write mode (docs/protocol.md, "Multicast WRITE").
void replicate(Call& call, OneSource& group, const GroupPacket& packet);

// Lets the held packets of a newcomer through, if the gate has opened. Call it after all else that
// moves state.
void try_gate(Call& call, OneSource& group);

// READ, atomics, WRITE where there is none: tells a host, without acknowledging anything that is
// not, that groups don't do this.
void refuse_operation(Call& call, OneSource& group, const GroupPacket& packet);

}  // namespace cepheus::fabric
