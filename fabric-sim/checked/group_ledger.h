// The books of one group: who has received what, and who has been told what. Knows the truth;
// decides nothing.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabric-sim/checked/findings.h"
#include "fabric-sim/checked/region_books.h"
#include "fabric-sim/checked/scenario_plan.h"
#include "wire/announcement.h"

namespace cepheus::sim {

class GroupLedger {
 public:
  GroupLedger(const GroupPlan& plan, std::uint64_t seed, Findings& findings);

  // The content of a message: a function of seed, group and message, different at every offset.
  void fill(std::size_t message, std::span<std::uint8_t> out) const;

  // May `member` send `message` now? Under rule C1 it has received all earlier messages of the
  // others.
  bool may_send(std::size_t member, std::size_t message) const;

  // The member's NIC has the message, its program not yet: of a WRITE, `bytes` is empty.
  void on_arrived(std::size_t member, std::uint32_t message, std::span<const std::uint8_t> bytes);
  // `message` is what the packet's immediate data says it is.
  void on_delivered(std::size_t member, std::uint32_t message, std::span<const std::uint8_t> bytes);
  // The same of a WRITE with immediate, which is in the member's region.
  void on_written(std::size_t member, std::uint32_t message, std::uint32_t bytes);
  void on_completed(std::size_t message);
  // The group has failed at the member.
  void on_failed(std::size_t member, const std::string& what);
  // ... because nobody answered it.
  void on_gave_up(std::size_t member, const std::string& what) const;
  // ... before all members were active.
  void on_not_registered(const std::string& what);
  // The leader counts so many members: none that lives is missing.
  void check_member_count(std::size_t count) const;

  void on_posted(std::size_t message) { posted_[message] = true; }

  // The message behind which packets are to be jumped over before anybody may send another: once
  // everybody has it and all before it. How many are left; on_jump() takes from them.
  std::optional<std::size_t> due_jump() const;
  std::uint64_t jump_left() const { return jump_left_; }
  void on_jump(std::uint64_t packets);

  // The member is gone: nobody waits for it, and what it had not begun to send is never sent. What
  // it had begun may be lost, and all that comes after it.
  void on_death(std::size_t member);
  bool is_dead(std::size_t member) const { return dead_[member]; }
  std::size_t living_members() const {
    return static_cast<std::size_t>(std::ranges::count(dead_, false));
  }
  // Operations may fail from here on. They may still not falsely complete.
  void on_disaster() { may_fail_ = was_struck_ = true; }
  bool may_fail() const { return may_fail_; }
  // Its leader ends the group: it is to fail at all other members.
  void on_end() { is_over_ = true; }

  RegionBooks& regions() { return regions_; }
  // Where each member's region lies, by member: they tell each other, by whatever means.
  std::vector<wire::AnnouncedTarget>& targets() { return targets_; }
  // Every byte that members may write to is what it should be. When nothing is under way any more.
  void check_regions() const;

  std::uint64_t completed_writes() const;

  // Every message is at every member and completed at its source.
  bool is_done() const { return open_deliveries_ == 0 && open_completions_ == 0; }
  // Called when time is up: whoever still waits has waited in vain.
  void check_ended() const;

  const GroupPlan& plan() const { return plan_; }

 private:
  bool is_expected(std::size_t message, std::size_t member) const {
    return !dead_[member] && !skipped_[message] && !plan_.messages[message].outside;
  }
  bool is_next(std::size_t member, std::uint32_t message);
  bool take_untold(std::size_t member, std::size_t message);
  void note_delivered(std::size_t member, std::size_t message) {
    delivered_[message * plan_.members.size() + member] = true;
  }
  void recount();
  void find_jump(std::size_t from);
  bool has(std::size_t message, std::size_t member) const {
    return delivered_[message * plan_.members.size() + member];
  }
  bool has_arrived(std::size_t message, std::size_t member) const {
    return arrived_[message * plan_.members.size() + member];
  }
  bool matches(std::size_t message, std::span<const std::uint8_t> bytes) const;
  std::string name_of(std::size_t message) const;

  const GroupPlan& plan_;
  const std::uint64_t key_;
  Findings& findings_;
  RegionBooks regions_;
  std::vector<wire::AnnouncedTarget> targets_;
  std::vector<bool> delivered_;         // by message and member; true for the source
  std::vector<bool> arrived_;           // ... as it should be, whether its program knows or not
  std::vector<bool> completed_;         // by message
  std::vector<bool> posted_, skipped_;  // by message
  std::vector<bool> dead_;              // by member
  bool may_fail_ = false;
  bool was_struck_ = false;  // by a disaster: its leader may be gone, or the way there
  bool is_over_ = false;
  bool has_failed_ = false;        // at some member
  std::vector<std::size_t> next_;  // by member: its next message, in turns
  std::size_t jump_behind_ = 0;    // the next message with a jump; that many: there is none
  std::uint64_t jump_left_ = 0;    // packets
  std::size_t open_deliveries_ = 0;
  std::size_t open_completions_ = 0;
};

}  // namespace cepheus::sim
