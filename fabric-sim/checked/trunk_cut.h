// Trunks that are cut, or fall silent, on fabrics with equal-cost paths. The groups over them may
// end, all others must go on unchanged, and new groups of the same members must come up over other
// paths.
#pragma once

#include <vector>

#include "fabric-sim/checked/incidents.h"
#include "fabric-sim/core/network.h"
#include "fabric-sim/core/random.h"

namespace cepheus::sim {

// Draws a cut that leaves a path between any two hosts, and adds successors of all groups.
void add_trunk_cut(Random& random, ScenarioPlan& plan);

class TrunkCut final : public Actor {
 public:
  TrunkCut(Simulator& simulator, Network& network, const ScenarioPlan& plan)
      : simulator_(simulator), network_(network), plan_(plan) {}
  void add(Victim& victim) { groups_.push_back(&victim); }
  void start();

  void on_event(Instant now, std::uint64_t what) override;

 private:
  enum What : std::uint64_t { kCut, kMend };

  void set(Instant now, bool whole);
  bool goes_over_it(const Victim& group) const;

  Simulator& simulator_;
  Network& network_;
  const ScenarioPlan& plan_;
  std::vector<Victim*> groups_;
};

}  // namespace cepheus::sim
