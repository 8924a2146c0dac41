// REJECTs to the leader of a group: of WRITEs that a member's regions do not allow, whose source
// gets a NAK as well (docs/protocol.md, "Multicast WRITE"), of packets that do not fit through a
// port, of lost paths, and of groups that can't go on.
#pragma once

#include <optional>

#include "switch-emulator/engine/group/group.h"
#include "wire/mrp.h"

namespace cepheus::fabric {

struct Call;
struct GroupEntry;
struct GroupInstance;
struct Leader;

// This switch refuses the WRITE that begins with `packet`, at `psn` of the group, for the member at
// `path`, and its later packets: NAK(remote access) to the source, REJECT(remote access) with the
// member's name to the leader.
void refuse_write(Call& call, Group& group, const GroupPacket& packet, Psn psn, const Path& path);

// The NIC of the member at `path` has refused a WRITE by the NAK `packet`: sends REJECT to the
// leader. The NAK is handled as feedback.
void name_refuser(Call& call, Group& group, const GroupPacket& packet, const Path& path);

// The member at `path` publishes regions in a group of another write mode, or needs announced
// WRITEs: sends REJECT(write mode) to the leader.
void refuse_regions(Call& call, const Mft& mft, const Leader& leader, const Path& path);

// A copy of this group's data did not fit through `port` (Call::take_too_long): the leader gets
// REJECT(too long) with that port's path MTU and a member behind it, once in kBetweenTooLong.
inline constexpr wire::Duration kBetweenTooLong = std::chrono::milliseconds(200);
void report_too_long(Call& call, GroupEntry& entry, PortId port);

// The trunk that is this path is down: REJECT(path lost), with a member behind it.
void report_lost_path(Call& call, const Leader& leader, const GroupInstance& table, PathNo path);

// REJECT with the members that the failure names: behind a trunk, one of them.
void report_failure(Call& call, const GroupEntry& entry, const Behaviour::Failure& failure);

}  // namespace cepheus::fabric
