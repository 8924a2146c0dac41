// The test's record of one group: messages that each member has received, and completions that it
// got. It knows the true state, and decides nothing.
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

  // Whether `member` may send `message` now: under rule C1 it must have received all earlier
  // messages of the others.
  bool may_send(std::size_t member, std::size_t message) const;

  // The member's NIC has the message, its program not yet; for a WRITE `bytes` is empty.
  void on_arrived(std::size_t member, std::uint32_t message, std::span<const std::uint8_t> bytes);
  // `message` is the packet's immediate data.
  void on_delivered(std::size_t member, std::uint32_t message, std::span<const std::uint8_t> bytes);
  // The same for a WRITE with immediate: its data is in the member's region.
  void on_written(std::size_t member, std::uint32_t message, std::uint32_t bytes);
  void on_completed(std::size_t message);
  // The group has failed at the member.
  void on_failed(std::size_t member, const std::string& what);
  // ... because no answer came.
  void on_gave_up(std::size_t member, const std::string& what) const;
  // ... before all members were active.
  void on_not_registered(const std::string& what);
  // The leader counts this number of members: no living one is missing.
  void check_member_count(std::size_t count) const;

  void on_posted(std::size_t message) { posted_[message] = true; }

  // The message before the next jump, once all members have it and all earlier messages.
  // jump_left() packets are still to be jumped over; on_jump() subtracts from them.
  std::optional<std::size_t> due_jump() const;
  std::uint64_t jump_left() const { return jump_left_; }
  void on_jump(std::uint64_t packets);

  // The member is gone: no member waits for it, and it will send none of the messages that it had
  // not begun. Messages that it had begun may be lost, and so may all later ones.
  void on_death(std::size_t member);
  bool is_dead(std::size_t member) const { return dead_[member]; }
  std::size_t living_members() const {
    return static_cast<std::size_t>(std::ranges::count(dead_, false));
  }
  // Operations may fail from here on, but must not falsely complete.
  void on_disaster() { may_fail_ = was_struck_ = true; }
  bool may_fail() const { return may_fail_; }
  // Its leader ends the group: it must fail at all other members.
  void on_end() { is_over_ = true; }

  RegionBooks& regions() { return regions_; }
  // Addresses of the members' regions, by member, which they exchange outside the group.
  std::vector<wire::AnnouncedTarget>& targets() { return targets_; }
  // Every writable byte of the members is right. Precondition: no packet is under way.
  void check_regions() const;

  std::uint64_t completed_writes() const;

  // Every member has every message, and every source has its completions.
  bool is_done() const { return open_deliveries_ == 0 && open_completions_ == 0; }
  // Called when the time is over: any member that still waits is a violation.
  void check_ended() const;

  const GroupPlan& plan() const { return plan_; }

 private:
  bool is_expected(std::size_t message, std::size_t member) const {
    return !dead_[member] && !skipped_[message] && !plan_.messages[message].outside;
  }
  bool is_next(std::size_t member, std::uint32_t message);
  bool take_silent(std::size_t member, std::size_t message);
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
  std::vector<bool> arrived_;           // ... correctly, whether its program knows or not
  std::vector<bool> completed_;         // by message
  std::vector<bool> posted_, skipped_;  // by message
  std::vector<bool> dead_;              // by member
  bool may_fail_ = false;
  bool was_struck_ = false;  // by a disaster: the leader or the way to it may be gone
  bool is_over_ = false;
  bool has_failed_ = false;        // at some member
  std::vector<std::size_t> next_;  // by member: its next message in the order of turns
  std::size_t jump_behind_ = 0;    // the next message with a jump; plan_.messages.size(): none
  std::uint64_t jump_left_ = 0;    // packets
  std::size_t open_deliveries_ = 0;
  std::size_t open_completions_ = 0;
};

}  // namespace cepheus::sim
