#include "switch-emulator/engine/registration/trees.h"

namespace cepheus::fabric {

bool may_have_tree(const GroupInstance& table, const MrpRequest& request) {
  const Mft& mft = table.mft;
  if (request.message.tree && mft.paths[mft.leader].is_host) return false;
  return !table.kind.reduction || request.message.has_space_for_tree();
}

void take_tree(const GroupInstance& table, const MrpRequest& request) {
  const Mft& mft = table.mft;
  if (request.message.tree) mft.behaviour->on_tree(mft.leader, *request.message.tree);
}

bool knows_trees(const GroupInstance& table, const MrpRequest& request) {
  const Mft& mft = table.mft;
  const auto& tree = request.message.tree;
  for (PathNo i = 0; i < mft.paths.size(); ++i) {
    if (mft.paths[i].is_host) continue;
    const std::size_t at_leaders_side = tree ? tree->members : 0;
    const std::size_t members =
        i == mft.leader ? at_leaders_side : table.roster.count_behind(mft.paths[i].port);
    if (!mft.behaviour->has_tree(i, members)) return false;
  }
  return true;
}

}  // namespace cepheus::fabric
