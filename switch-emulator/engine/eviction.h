// Members that die or stall: a switch tells the leader which of its hosts hold a group up, and
// takes them out at its word (docs/protocol.md, "Members that die or stall").
//
// Each switch speaks of and evicts hosts on its own ports only. A switch that is left without
// members goes on acknowledging for them: nothing above it needs to know.
#pragma once

#include <optional>

#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/routes.h"

namespace cepheus::fabric {

// The port that `host` is behind, if it is one of this switch's own hosts.
std::optional<PortId> own_port(const Call& call, const Routes& routes, Ipv4 host);

// REPORT of the hosts that hold the group up, or of `only` one path; if there is none nothing,
// unless the leader waits to hear of its switch.
void report_hosts(Call& call, const Routes& routes, const Leader& leader, const Group& group,
                  std::optional<PathNo> only, bool even_if_empty = false);

// REJECT(path lost) to the leader: the trunk that is this path is down.
void report_lost_path(Call& call, const Leader& leader, const GroupInstance& table, PathNo path);

// Takes a path out of the group: its acknowledgements are not waited for any more, its packets are
// those of a stranger. What the others have acknowledged is passed on at once, and a newcomer that
// waited only for this path begins.
void evict(Call& call, GroupTable& groups, Group& group, PathNo path);

}  // namespace cepheus::fabric
