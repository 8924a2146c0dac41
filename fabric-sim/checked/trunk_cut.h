// Trunks that are cut, or fall silent, on fabrics with equal-cost paths: the groups that go over
// them may end, all others must not notice, and fresh groups of the same members must come up by
// another way.
#pragma once

#include <memory>
#include <vector>

#include "fabric-sim/checked/incidents.h"

namespace cepheus::sim {

// Gives the plan a leaf-spine fabric or a small fat-tree instead of its tree of switches, before it
// has groups.
void use_equal_cost_paths(Random& random, ScenarioPlan& plan);
// A cut that leaves a way between any two hosts, and for each group one of the same members that
// begins when all switches know.
void add_trunk_cut(Random& random, ScenarioPlan& plan);

class TrunkCut final : public Actor {
 public:
  TrunkCut(Simulator& simulator, Network& network, const ScenarioPlan& plan)
      : simulator_(simulator), network_(network), plan_(plan) {}
  void add(const Victim& victim) { groups_.push_back(victim); }
  void start();

  void on_event(Instant now, std::uint64_t what) override;

 private:
  enum What : std::uint64_t { kCut, kMend };

  void set(Instant now, bool whole);
  bool goes_over_it(const Victim& group) const;

  Simulator& simulator_;
  Network& network_;
  const ScenarioPlan& plan_;
  std::vector<Victim> groups_;
};

}  // namespace cepheus::sim
