// A run of groups that reduce: each group of the plan is a reduction group of the same members.
#pragma once

#include "fabric-sim/checked/reductions/hostile_member.h"
#include "fabric-sim/checked/reductions/reduction_program.h"
#include "fabric-sim/checked/scenario.h"

namespace cepheus::sim {

class ReductionScenario final : public Scenario {
 public:
  // `trace` and `recording` as in GroupScenario.
  explicit ReductionScenario(const ScenarioPlan& scenario, std::ostream* trace = nullptr,
                             std::ostream* recording = nullptr);

 private:
  struct Group final : GroupOf<ReductionLedger, ReductionProgram> {
    using GroupOf::GroupOf;

    const GroupPlan& plan() const override { return ledger.plan().group; }
    void kill(std::size_t member) override {
      ledger.on_death(member);
      members[member]->close();
    }

    bool has_begun = false;  // members may begin operations
  };

  void run_operations() override;
  bool all_done() const override;
  void on_step() override;
  void begin_operations();
  bool skip(const Group& group, std::uint64_t units);
  bool may_lose_members() const;
  void find_pairs_later(Group& group);
  void add_hostile_members(Group& group);
  bool waits_for_hostile(const Group& group) const;

  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::unique_ptr<HostileMember>> hostile_;
};

}  // namespace cepheus::sim
