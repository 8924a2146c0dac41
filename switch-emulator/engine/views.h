// For administrators: the view of a group, and the size of its table.
#pragma once

#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/mcrdma/sender_table.h"

namespace cepheus::fabric {

GroupView view_of(const SwitchConfig& config, const GroupTable& groups, const GroupEntry& entry);
SenderGroupView view_of(const SenderGroup& group);

// Memory outside named fields (padding, and vectors' own pointers) is a row of its own, so that the
// rows add up.
TableBytes bytes_of(const GroupInstance& table);
TableBytes bytes_of(const TableShape& shape);

}  // namespace cepheus::fabric
