// TREE records in CONNECT and ACTIVATE of a reduction group (docs/protocol.md, "The root of a
// reduction").
#pragma once

#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/registration/mrp_request.h"

namespace cepheus::fabric {

// False: the request is malformed. Switches alone know trees, and pass it on with their own.
bool may_have_tree(const GroupInstance& table, const MrpRequest& request);
// Takes in what is known of the members at the leader's side.
void take_tree(const GroupInstance& table, const MrpRequest& request);
// Whether all members' trees are known. `request`: ACTIVATE, which has been taken in.
bool knows_trees(const GroupInstance& table, const MrpRequest& request);

}  // namespace cepheus::fabric
