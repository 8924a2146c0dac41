// Group data: one copy to every path that lacks it (paper III-B 2, III-D "filtering retransmitted
// packets").
#pragma once

#include "switch-emulator/engine/claim.h"

namespace cepheus::fabric {

// Handles data of an active group; the frame's ICRC has been checked. The group's write mode
// determines the handling of RDMA WRITEs (docs/protocol.md, "Multicast WRITE").
void replicate(Call& call, OneSource& group, const GroupPacket& packet);

// Lets a newcomer's held packets through, if the gate has opened. Call it after all other changes
// of state.
void try_gate(Call& call, OneSource& group, const Leader& leader);

// For READ, atomics, and WRITE where it is off: sends the host an error, which acknowledges nothing
// new.
void refuse_operation(Call& call, OneSource& group, const GroupPacket& packet);

}  // namespace cepheus::fabric
