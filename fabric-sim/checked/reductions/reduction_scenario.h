// One run of a seed whose groups reduce: a phase of faults, one without, and the end.
#pragma once

#include <memory>
#include <vector>

#include "fabric-sim/checked/group_scenario.h"
#include "fabric-sim/checked/reductions/reduction_program.h"

namespace cepheus::sim {

class ReductionScenario final : private Actor {
 public:
  // Of the plan's groups, each becomes a reduction group of the same members. `trace` as in
  // GroupScenario.
  explicit ReductionScenario(const ScenarioPlan& plan, std::ostream* trace = nullptr);
  Outcome run();

  Network& network() { return network_; }

 private:
  enum What : std::uint64_t { kFaultsBegin, kFaultsEnd, kGroupBegins };  // ... + its number
  struct Group final : Victim {
    Group(const ReductionPlan& plan, Findings& findings) : ledger(plan, findings) {}

    ReductionLedger ledger;
    std::vector<std::unique_ptr<ReductionProgram>> members;
    std::vector<wire::MrpMember> names;
    bool has_begun = false;  // its operations may

    const GroupPlan& plan() const override { return ledger.plan().group; }
    bool leader_is_active() const override { return leader().is_active(); }
    void on_disaster() override { ledger.on_disaster(); }
    void kill(std::size_t member) override {
      ledger.on_death(member);
      members[member]->close();
    }
    ReductionProgram& leader() const { return *members[plan().leader]; }
  };

  void add_group(const GroupPlan& plan);
  void on_event(Instant now, std::uint64_t what) override;
  bool run_until(Instant end);
  void begin_operations();
  void run_operations();
  void check_path_mtus();
  bool is_whole() const;
  bool something_is_left() const;
  void dissolve();
  Outcome summary();

  const ScenarioPlan plan_;
  Simulator simulator_;
  Findings findings_;
  IsolationWatch isolation_;
  Network network_;
  std::vector<std::unique_ptr<Group>> groups_;
  Incidents incidents_;
  TrunkCut cut_;
};

}  // namespace cepheus::sim
