// A run of groups: their members multicast messages.
#pragma once

#include "fabric-sim/checked/group_ledger.h"
#include "fabric-sim/checked/group_member.h"
#include "fabric-sim/checked/scenario.h"

namespace cepheus::sim {

class GroupScenario final : public Scenario {
 public:
  // `trace` gets the run as text and `recording` a timeline, if not null.
  explicit GroupScenario(const ScenarioPlan& scenario, std::ostream* trace = nullptr,
                         std::ostream* recording = nullptr);

 private:
  struct Group final : GroupOf<GroupLedger, GroupMember> {
    using GroupOf::GroupOf;

    const GroupPlan& plan() const override { return ledger.plan(); }
    void kill(std::size_t member) override;
    // Whether a member has an open send, neither completed nor failed.
    bool is_waiting() const;
  };

  // Whether a NIC may give up on a member that is not ready: gates and late receives may need more
  // RNR NAKs than it has retries.
  bool may_give_up(const GroupPlan& group) const;
  void add_group(const GroupPlan& group_plan);
  void run_operations() override;
  bool all_done() const override;
  void on_step() override { jump(); }
  void check_end() override;
  void add_to(Outcome& outcome) const override;
  std::string still_open(const Group& group) const;
  void end_operations();
  void jump();
  bool jump(Group& group, std::size_t source, std::uint64_t packets);

  std::vector<std::unique_ptr<Group>> groups_;
  std::uint64_t jumped_ = 0;
};

}  // namespace cepheus::sim
