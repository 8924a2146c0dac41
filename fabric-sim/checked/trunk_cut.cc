#include "fabric-sim/checked/trunk_cut.h"

#include <algorithm>

#include "fabric-sim/checked/fabric_plan.h"
#include "switch-emulator/engine/views.h"

namespace cepheus::sim {
using namespace std::chrono_literals;

void add_trunk_cut(Random& random, ScenarioPlan& plan) {
  TrunkCutPlan& cut = plan.cut;
  const auto& trunks = plan.topology.trunks;
  const std::size_t one = random.below(trunks.size());
  if (random.chance(0.5)) {
    cut.trunks = {one};
  } else {  // all of the switch at its upper end
    for (std::size_t i = 0; i < trunks.size(); ++i) {
      if (trunks[i].a == trunks[one].b || trunks[i].b == trunks[one].b) cut.trunks.push_back(i);
    }
  }
  cut.at = random.between(wire::Duration{50us}, wire::Duration{6ms});
  cut.noticed = random.chance(0.6);
  cut.one_way = !cut.noticed && random.chance(0.3);
  if (random.chance(0.5)) cut.lasts = random.between(wire::Duration{3ms}, wire::Duration{40ms});
  add_successors(random, plan, std::max(cut.at, last_restart(plan)));
}

void TrunkCut::start() {
  const TrunkCutPlan& cut = plan_.cut;
  if (cut.trunks.empty()) return;
  simulator_.schedule(Instant{cut.at}, *this, kCut);
  if (cut.lasts.count() > 0) simulator_.schedule(Instant{cut.at + cut.lasts}, *this, kMend);
}

void TrunkCut::on_event(Instant now, std::uint64_t what) {
  simulator_.trace().note(now, "fabric", what == kCut ? "loses trunks" : "has its trunks again");
  if (what == kCut) {
    for (Victim* const group : groups_) {
      if (goes_over_it(*group)) group->on_disaster();
    }
  }
  set(now, what == kMend);
}

void TrunkCut::set(Instant now, bool whole) {
  for (const std::size_t trunk : plan_.cut.trunks) {
    network_.set_trunk(now, trunk, whole, plan_.cut.one_way, plan_.cut.noticed);
  }
}

// A group may also, during its set-up.
bool TrunkCut::goes_over_it(const Victim& group) const {
  if (group.plan().starts.count() > 0) return false;  // not yet
  if (!group.leader_is_active()) return true;
  for (const std::size_t trunk : plan_.cut.trunks) {
    for (const auto& [node, port] : network_.ends_of(trunk)) {
      const auto view = node->engine().group(group.plan().id);
      const auto is_it = [&](const fabric::PathView& path) { return path.port == port; };
      if (view && std::ranges::any_of(view->paths, is_it)) return true;
    }
  }
  return false;
}

}  // namespace cepheus::sim
