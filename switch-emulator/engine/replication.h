// Group data: one copy to every path that lacks it (paper III-B 2, III-D "filtering retransmitted
// packets").
#pragma once

#include "switch-emulator/engine/claim.h"

namespace cepheus::fabric {

// Handles data of an active group; the frame's ICRC has been checked. kHeld: the gate keeps the
// frame's buffer.
Disposition replicate(Call& call, Group& group, const GroupPacket& packet);

// The same of a WRITE's first packet, for each member with the address and key of its region. If
// one behind this switch has no such region, or a smaller one, none of them gets it
// (refusals.h). The offset is its virtual address, the region's number its key.
Disposition replicate_addressed(Call& call, Group& group, const GroupPacket& packet);
// The same of a WRITE's other packets: those of one that was refused are dropped.
Disposition replicate_continued(Call& call, Group& group, const GroupPacket& packet);

// An announcement (wire/announcement.h): what it says of members behind this switch is noted, and they
// get a WRITE without data in its place. One whose member has as many noted as there is room for is
// not sent to that member, who asks for it again.
Disposition replicate_announcement(Call& call, Group& group, const GroupPacket& packet);
// The first packet of a WRITE that was announced: for each member with the address and key that were
// noted for its PSN, refused as replicate_addressed() does where it is longer than what was
// announced, or was not. To a member whose announcement was lost before it came here it is not sent:
// under no key would it be harmless, should it be held back until the member has the announcement.
Disposition replicate_announced(Call& call, Group& group, const GroupPacket& packet);

// Lets the held packets of a newcomer through, if the gate has opened. Call it after all else that
// moves state.
void try_gate(Call& call, Group& group);

// READ, atomics, WRITE where there is none: tells a host, without acknowledging anything that is
// not, that groups don't do this.
void refuse_operation(Call& call, Group& group, const GroupPacket& packet);

}  // namespace cepheus::fabric
