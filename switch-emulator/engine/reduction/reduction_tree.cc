// The tree of a reduction group: what is behind each path, and where the root is.
#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/reduction/reduction_group.h"
#include "wire/situation.h"

namespace cepheus::fabric {

void ReductionGroup::on_path_added() {
  hops_.emplace_back();
  sides_.add_path();
}

// A host's address is its port's.
void ReductionGroup::take_hosts(const Call& call) {
  for (PathNo i = 0; i < tree_.paths.size(); ++i) {
    if (tree_.paths[i].is_host) sides_.set_host(i, call.port(tree_.paths[i].port).host);
  }
}

bool ReductionGroup::has_tree(PathNo path, std::size_t members) const {
  return members > 0 && sides_.behind(path).members == members;
}

std::optional<wire::MrpTree> ReductionGroup::tree_for(const Call& call, PathNo path) {
  take_hosts(call);
  const wire::MrpTree others = sides_.without(path);
  return others.members > 0 ? std::optional(others) : std::nullopt;
}

void ReductionGroup::on_active(const Call& call) {
  take_hosts(call);
  parent_ = sides_.to_root(tree_.leader);
  const bool is_leaders = tree_.leader_trunk() == kNoPath;
  if (is_leaders && parent_ != kNoPath) CEPHEUS_SITUATION("the root is not at the leader's switch");
  if (!is_leaders && parent_ == kNoPath) CEPHEUS_SITUATION("a root is behind the leader's switch");
  if (!is_leaders && parent_ != kNoPath && parent_ != tree_.leader) {
    CEPHEUS_SITUATION("the root and the leader are behind different paths");
  }
}

}  // namespace cepheus::fabric
