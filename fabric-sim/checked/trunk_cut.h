// Trunks that are cut, or fall silent, on fabrics with equal-cost paths: the groups that go over
// them may end, all others must not notice, and fresh groups of the same members must come up by
// another way.
#pragma once

#include <vector>

#include "fabric-sim/checked/incidents.h"
#include "fabric-sim/core/network.h"
#include "fabric-sim/core/random.h"

namespace cepheus::sim {

// A cut that leaves a way between any two hosts, and successors of all groups.
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
