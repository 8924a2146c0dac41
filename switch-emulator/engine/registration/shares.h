// What the ways of a group can take, and how the leader learns it (docs/protocol.md, "What a way can
// take"): the queues of this switch's ports, divided among groups, and what the switches behind it
// have sent.
#pragma once

#include "switch-emulator/engine/group_table.h"

namespace cepheus::fabric {

// The least of this switch's ports and of all behind them.
wire::MrpPath path_of(const GroupTable& groups, const GroupEntry& entry);

// REPORTs it to the next node on the way to the leader.
void report_path(Call& call, const GroupTable& groups, GroupEntry& entry);
// The same if it has changed since that node last heard of it, and data flows.
void report_path_change(Call& call, const GroupTable& groups, GroupEntry& entry);
// The same for all groups in use, if shares have changed. An idle group's is sent when it is used.
void report_share_changes(Call& call, GroupTable& groups);

}  // namespace cepheus::fabric
