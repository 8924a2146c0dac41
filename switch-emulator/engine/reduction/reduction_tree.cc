// The tree of a reduction group: what is behind each path, and where the root is.
#include <algorithm>
#include <utility>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/reduction/reduction_group.h"
#include "wire/situation.h"

namespace cepheus::fabric {

void ReductionGroup::on_path_added() {
  hops_.emplace_back();
  sides_.add_path();
  most_paths_ = std::max(most_paths_, hops_.size());
}

// The number of a path depends on the order of REGISTER's members.
void ReductionGroup::set_order(const Call& call) {
  SumOrder order{std::vector<PathNo>(hops_.size(), kNoPath), children()};
  std::vector<PathNo> paths = sides_.in_order(parent());
  if (!call.rules().reduction_order) std::ranges::sort(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) order.places[paths[i]] = static_cast<PathNo>(i);
  slots_.set_order(std::move(order));
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
  const auto if_known = [](const wire::MrpTree& tree) {
    return tree.members > 0 ? std::optional(tree) : std::nullopt;
  };
  if (tree_.paths[path].is_host) return if_known(members_);
  take_hosts(call);
  wire::MrpTree others = sides_.without(path);
  if (sides_.group_is_flat(tree_.leader)) others.flags |= wire::MrpTree::kGroupIsFlat;
  return if_known(others);
}

void ReductionGroup::on_active(const Call& call) {
  take_hosts(call);
  parent_ = sides_.to_root(tree_.leader);
  members_ = sides_.without(kNoPath);
  members_.flags = sides_.group_is_flat(tree_.leader) ? wire::MrpTree::kGroupIsFlat : 0;
  if (slots_.has_order() && call.rules().reduction_in_pairs) set_order(call);
  if (members_.flags != 0 && parent_ != kNoPath) {
    CEPHEUS_SITUATION("a switch learns from the root that its group is flat");
  }
  const bool is_leaders = tree_.leader_trunk() == kNoPath;
  if (is_leaders && parent_ != kNoPath) CEPHEUS_SITUATION("the root is not at the leader's switch");
  if (!is_leaders && parent_ == kNoPath) CEPHEUS_SITUATION("a root is behind the leader's switch");
  if (!is_leaders && parent_ != kNoPath && parent_ != tree_.leader) {
    CEPHEUS_SITUATION("the root and the leader are behind different paths");
  }
}

}  // namespace cepheus::fabric
