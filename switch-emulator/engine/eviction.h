// Members that die or stall: a switch reports its lagging hosts to the leader, and evicts them on
// the leader's request (docs/protocol.md, "Members that die or stall").
//
// Each switch reports and evicts hosts on its own ports only. A switch that is left without members
// goes on acknowledging for them, so switches above need no message.
#pragma once

#include <optional>

#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/routes.h"

namespace cepheus::fabric {

// The port that `host` is behind, if it is one of this switch's own hosts.
std::optional<PortId> own_port(const Call& call, const Routes& routes, Ipv4 host);

// Sends a REPORT of the lagging hosts, or of `only` one path. If none lags, sends nothing, unless
// the leader waits for its switch.
void report_hosts(Call& call, const Routes& routes, const Leader& leader, const Mft& mft,
                  std::optional<PathNo> only, bool even_if_empty = false);

// Takes a path out of the group: its acknowledgements are no longer awaited, and its packets are
// treated as a stranger's. Passes on at once the acknowledgements of the others, and admits a
// newcomer that waited only for this path.
void evict(Call& call, GroupTable& groups, GroupEntry& entry, PathNo path);

}  // namespace cepheus::fabric
