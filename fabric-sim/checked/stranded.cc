#include "fabric-sim/checked/stranded.h"

#include <algorithm>

#include "switch-emulator/engine/views.h"

namespace cepheus::sim {
namespace {

// The switches between that member and its leader.
bool reaches_leader(const Network& network, wire::McstId id, std::size_t host) {
  const SwitchNode* node = &network.switch_of(host);
  for (std::size_t hops = 0; hops < network.switches().size(); ++hops) {
    const auto table = node->engine().group(id);
    if (!table || !table->active) return false;
    const auto way = std::ranges::find(table->paths, true, &fabric::PathView::towards_leader);
    if (way == table->paths.end()) return false;
    if (way->is_host) return true;
    node = &network.peer_of(*node, way->port);
  }
  return false;
}

// Whether its leader is dead, or the group has ended at a living member.
bool is_over(const GroupParts& group) {
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    const bool counts = !group.ledger.is_dead(i) || i == group.ledger.plan().leader;
    if (counts && group.members[i]->has_ended()) return true;
  }
  return false;
}

}  // namespace

std::optional<std::size_t> stranded_member(const Network& network, const GroupParts& group) {
  const GroupPlan& plan = group.ledger.plan();
  const bool is_set_up = group.leader.takes_part() || group.leader.has_ended();
  if (!is_set_up) return std::nullopt;  // the registration's time-out ends it
  const bool has_tables = group.leader.takes_part() && !plan.has_one_sender;
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    if (!group.members[i]->takes_part()) continue;
    if (is_over(group)) return i;
    if (has_tables && !reaches_leader(network, plan.id, plan.members[i].host)) return i;
  }
  return std::nullopt;
}

}  // namespace cepheus::sim
