// The oracle of one reduction group: it compares each member's results with all contributions, and
// reports each error that no incident excuses.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fabric-sim/checked/findings.h"
#include "fabric-sim/checked/reductions/member_pairs.h"
#include "fabric-sim/checked/reductions/reduction_plan.h"
#include "fabric-sim/checked/reductions/values.h"

namespace cepheus::sim {

class ReductionLedger {
 public:
  ReductionLedger(const ReductionPlan& plan, Findings& findings);

  const ReductionPlan& plan() const { return plan_; }
  std::size_t members() const { return members_.size(); }

  // One byte of a member's contribution to an operation. Of plain bytes most come from one member,
  // and the others contribute zero. In every third byte the bits come from several members.
  std::uint8_t contribution(std::size_t member, std::size_t operation, std::uint64_t at) const;
  // `is_flat`: as the member has learnt. All members have to learn the same.
  void on_active(std::size_t member, bool is_flat);
  // Once all switches have the group: the pairs of floating-point sums over its tree.
  void set_pairs(const MemberPairs& over_tree);
  bool has_pairs() const { return pairs_.has_value(); }
  // Members' addresses, and how to find these pairs. `find` may be called until it has found them.
  using FindPairs = std::function<std::optional<MemberPairs>()>;
  void find_pairs_by(std::vector<wire::Ipv4> addresses, FindPairs find);
  void look_for_pairs();
  void on_begun(std::size_t member) { ++members_[member].begun; }
  // The member has contributed to one more unit.
  void on_contributed(std::size_t member) { ++members_[member].contributed; }
  // The member has the next unit of an operation's result. All members must have contributed to it.
  void on_part(std::size_t member, std::size_t operation, std::uint64_t offset,
               std::span<const std::uint8_t> data);
  void on_ended(std::size_t member, std::size_t operation);
  // These bytes of an operation's result are the member's some time later. `where` is their memory.
  void check_kept(std::size_t member, std::size_t operation, std::uint64_t offset,
                  std::span<const std::uint8_t> data, const std::string& where);
  // The member has a wrong result. No disaster excuses this.
  void on_wrong(std::size_t member, const std::string& what);
  // The group has failed at this member: a finding, unless operations may fail.
  void on_failed(std::size_t member, const std::string& why);
  // The member has got no answer from its leader or its switch. The death of another member excuses
  // an error, but not this: the leader and the path to it are still there.
  void on_gave_up(std::size_t member, const std::string& why);
  void on_disaster() { may_fail_ = was_struck_ = true; }
  // A reduction group ends with its first loss of a member.
  void on_death(std::size_t member) {
    members_[member].is_dead = true;
    may_fail_ = true;
  }

  // This member is hostile from now on. The group may end, or wait for it, and the leader's reason
  // must name it. No check is of its own results. Other members get right results; if it spoils
  // them, they are the same at all members, and some contribution of its own explains each value.
  struct Hostile {
    std::size_t member;
    std::string address;
    bool spoils;
  };
  void on_hostile(Hostile hostile) { hostile_ = std::move(hostile); }
  const std::optional<Hostile>& hostile() const { return hostile_; }

  bool may_fail() const { return may_fail_ || hostile_; }
  bool is_dead(std::size_t member) const { return members_[member].is_dead; }
  std::size_t begun(std::size_t member) const { return members_[member].begun; }
  std::size_t ended(std::size_t member) const { return members_[member].ended; }
  // Each member has all results, or is dead, or knows that the group has failed. A member that was
  // not active yet when a disaster struck need not learn it.
  bool is_done() const;
  void check_done() const;

 private:
  struct Member {
    std::size_t begun = 0, ended = 0;
    std::uint64_t contributed = 0, parts = 0;  // units
    std::uint64_t received = 0;                // bytes of the operation that ends next
    bool is_active = false, is_dead = false, has_failed = false;
  };
  bool has_values(std::size_t operation) const;
  std::uint64_t value(std::size_t member, std::size_t operation, std::uint64_t index) const;
  // The result of this operation is known: it does not depend on pairs, or the pairs are known.
  bool is_known(std::size_t operation) const {
    return has_pairs() || !depends_on_pairs(plan_.operations[operation].kind);
  }
  // Of all members' values, or of those of all but one.
  std::uint64_t reduced(std::size_t operation, std::uint64_t index,
                        std::optional<std::size_t> without) const;
  std::uint8_t result(std::size_t operation, std::uint64_t at) const;
  bool is_hostile(std::size_t member) const { return hostile_ && hostile_->member == member; }
  bool is_whole(std::size_t operation, std::uint64_t bytes) const;
  std::optional<std::size_t> first_wrong(std::size_t operation, std::uint64_t offset,
                                         std::span<const std::uint8_t> data);
  bool may_be_spoilt(std::size_t operation, std::uint64_t at, std::span<const std::uint8_t> value);
  std::string name(std::size_t member) const;
  bool is_named(std::size_t member, const std::string& why) const;
  bool is_done(const Member& member) const;

  const ReductionPlan plan_;
  Findings& findings_;
  std::vector<Member> members_;
  bool may_fail_ = false, was_struck_ = false;
  std::optional<Hostile> hostile_;
  std::vector<wire::Ipv4> addresses_;
  FindPairs find_pairs_;
  std::optional<bool> is_flat_;
  std::optional<MemberPairs> pairs_;
  // By operation on values: its result's bytes, once they have been needed.
  mutable std::vector<std::vector<std::uint8_t>> results_;
  // By operation: the bytes of its result, as the first member got them; none: unknown.
  std::vector<std::vector<std::optional<std::uint8_t>>> spoilt_;
};

}  // namespace cepheus::sim
