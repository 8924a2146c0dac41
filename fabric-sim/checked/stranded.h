// Whether a member waits for a group that can't go on (docs/protocol.md, "Members that die or
// stall", rules 17 to 21).
#pragma once

#include <optional>

#include "fabric-sim/checked/group_ledger.h"
#include "fabric-sim/checked/group_member.h"
#include "fabric-sim/core/network.h"

namespace cepheus::sim {

struct GroupParts {
  const GroupLedger& ledger;
  const std::vector<std::unique_ptr<GroupMember>>& members;
  const GroupMember& leader;
};

// A member that takes part in the group, although its leader is dead, the group has ended at
// another living member, or a switch on the way to the leader has no table of it. Nothing for
// sender groups, because their switches learn the group again.
std::optional<std::size_t> stranded_member(const Network& network, const GroupParts& group);

}  // namespace cepheus::sim
