// WRITEs that a member's regions do not allow: the source gets a NAK, the leader a REJECT with the
// member's name (docs/protocol.md, "Multicast WRITE").
#pragma once

#include "switch-emulator/engine/group/one_source.h"

namespace cepheus::fabric {

struct Call;

// This switch refuses the WRITE that begins with `packet`, at `psn` of the group, for the member at
// `path`, and its later packets: NAK(remote access) to the source, REJECT(remote access) with the
// member's name to the leader.
void refuse_write(Call& call, OneSource& group, const GroupPacket& packet, Psn psn,
                  const Path& path);

// The NIC of the member at `path` has refused a WRITE by the NAK `packet`: sends REJECT to the
// leader. The NAK is handled as feedback.
void name_refuser(Call& call, OneSource& group, const GroupPacket& packet, const Path& path);

// The member at `path` publishes regions in a group of another write mode, or needs announced
// WRITEs: sends REJECT(write mode) to the leader.
void refuse_regions(Call& call, const Group& group, const Leader& leader, const Path& path);

}  // namespace cepheus::fabric
