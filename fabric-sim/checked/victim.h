// A group as incidents and cuts see it.
#pragma once

#include <memory>
#include <vector>

#include "fabric-sim/checked/group_ledger.h"
#include "fabric-sim/checked/group_member.h"

namespace cepheus::sim {

struct Victim {
  GroupLedger& ledger;
  std::vector<std::unique_ptr<GroupMember>>& members;
  GroupMember& leader;
};

}  // namespace cepheus::sim
