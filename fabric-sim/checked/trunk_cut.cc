#include "fabric-sim/checked/trunk_cut.h"

#include <algorithm>

#include "fabric-sim/checked/scenario_parts.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr wire::Duration kHello = 1ms;
// Until every switch knows of a cut: silence, and a list that may be lost on its way.
constexpr wire::Duration kKnown = 16 * kHello;

}  // namespace

void use_equal_cost_paths(Random& random, ScenarioPlan& plan) {
  const std::vector<net::SwitchSpec> specs = plan.topology.switches;
  net::Topology topology =
      random.chance(0.7)
          ? net::leaf_spine(random.between(2, 4), random.between(2, 3), random.between(1, 2))
          : net::fat_tree(4, {}, 2);
  topology.mtu = plan.topology.mtu;
  topology.seed = plan.topology.seed;
  topology.hello = kHello;
  for (net::SwitchSpec& spec : topology.switches) {
    configure_switch(random, spec, specs.front().config.rules);
    spec.config.orphan_age = 10ms;
    // Longer than leaders wait between two REFRESHs.
    spec.config.age = spec.config.pending_age = 60ms;
  }
  for (net::HostSpec& host : topology.hosts) host.up = host.down = make_link(random, plan.faults);
  for (net::TrunkSpec& trunk : topology.trunks) {
    trunk.ab = trunk.ba = make_link(random, plan.faults);
  }
  topology.assign_link_seeds();
  plan.topology = std::move(topology);
}

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
  cut.told = random.chance(0.6);
  cut.one_way = !cut.told && random.chance(0.3);
  if (random.chance(0.5)) cut.lasts = random.between(wire::Duration{3ms}, wire::Duration{40ms});
  const std::size_t groups = plan.groups.size();
  for (std::size_t g = 0; g < groups; ++g) {
    GroupPlan again = plan.groups[g];
    again.id = wire::McstId(again.id.value() + 2);
    again.starts = cut.at + kKnown + random.between(wire::Duration{0}, wire::Duration{5ms});
    plan.groups.push_back(std::move(again));
  }
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
    for (const Victim& group : groups_) {
      if (goes_over_it(group)) group.ledger.on_disaster();
    }
  }
  set(now, what == kMend);
}

void TrunkCut::set(Instant now, bool whole) {
  for (const std::size_t trunk : plan_.cut.trunks) {
    network_.set_trunk(now, trunk, whole, plan_.cut.one_way, plan_.cut.told);
  }
}

// Or may, as long as it is being set up.
bool TrunkCut::goes_over_it(const Victim& group) const {
  if (group.ledger.plan().starts.count() > 0) return false;  // not yet
  if (!group.leader.is_active()) return true;
  for (const std::size_t trunk : plan_.cut.trunks) {
    for (const auto& [node, port] : network_.ends_of(trunk)) {
      for (const fabric::GroupView& view : node->engine().groups(group.ledger.plan().id)) {
        const auto is_it = [&](const fabric::PathView& path) { return path.port == port; };
        if (std::ranges::any_of(view.paths, is_it)) return true;
      }
    }
  }
  return false;
}

}  // namespace cepheus::sim
