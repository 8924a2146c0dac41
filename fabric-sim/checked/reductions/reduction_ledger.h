// What the members of one reduction group have done, and whether it was right: the oracle.
#pragma once

#include <span>
#include <vector>

#include "fabric-sim/checked/findings.h"
#include "fabric-sim/checked/reductions/reduction_plan.h"

namespace cepheus::sim {

class ReductionLedger {
 public:
  ReductionLedger(const ReductionPlan& plan, Findings& findings);

  const ReductionPlan& plan() const { return plan_; }
  std::size_t members() const { return members_.size(); }

  // A byte of what a member contributes to an operation: its own blocks, zeros elsewhere.
  std::uint8_t contribution(std::size_t member, std::size_t operation, std::uint64_t at) const;
  void on_begun(std::size_t member);
  // The member has a part of an operation's result.
  void on_part(std::size_t member, std::size_t operation, std::uint64_t offset,
               std::span<const std::uint8_t> data);
  void on_ended(std::size_t member, std::size_t operation);
  // The member gives the group up: a finding, unless operations may fail.
  void on_failed(std::size_t member, const std::string& why);
  void on_disaster() { may_fail_ = true; }
  // A group ends with its first loss.
  void on_death(std::size_t member) {
    members_[member].is_dead = true;
    may_fail_ = true;
  }

  bool may_fail() const { return may_fail_; }
  bool is_dead(std::size_t member) const { return members_[member].is_dead; }
  std::size_t ended(std::size_t member) const { return members_[member].ended; }
  // All members have all results. If operations may fail: no living member waits for one.
  bool is_done() const;
  void check_done() const;

 private:
  struct Member {
    std::size_t begun = 0, ended = 0;
    bool is_dead = false, has_failed = false;
  };
  std::uint8_t result(std::size_t operation, std::uint64_t at) const;
  std::string name(std::size_t member) const;
  bool is_done(const Member& member) const;

  const ReductionPlan plan_;
  Findings& findings_;
  std::vector<Member> members_;
  bool may_fail_ = false;
};

}  // namespace cepheus::sim
