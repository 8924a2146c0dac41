// One member's part in a group, without verbs, sockets and clock: its state, its role, the change
// of the source, and the detection of failures.
//
//     in     control datagrams, time, calls of the user, posts and completions, the outcome of
//            actions
//     out    control datagrams and actions (GroupOutput), the role's deadline
//
// Each event takes its outputs along, and the group's failure among them. One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "controller/mcst_allocator.h"
#include "libmcast/engine/group_state.h"
#include "libmcast/engine/role.h"

namespace cepheus::mcast {

class GroupEngine {
 public:
  explicit GroupEngine(const GroupSettings& settings, mrp::Publisher regions = mrp::Publisher());

  const GroupState& group() const { return group_; }
  const Role& role() const { return *role_; }
  // The owner posts and completes work, and publishes memory.
  PostedWork& work() { return group_.work(); }
  mrp::Publisher& regions() { return group_.regions(); }
  // OK while this member may send.
  Expected<void> check_may_send() const;
  bool has_outcome() const;  // nothing is expected from the control channel soon
  // The leader has work while the program makes no calls: refresh the group, or send its failure.
  bool is_on_duty() const;

  // --- Registration. The caller becomes the leader; `config` without the path MTU.
  Expected<void> lead(wire::Instant now, mrp::RegistrationConfig config,
                      const mrp::McstAllocator::Lease& lease,
                      std::span<const mrp::MrpMember> members, GroupOutput& out);
  // The same of a sender group, see SenderRole.
  Expected<void> lead_as_sender(wire::Instant now, const mrp::SenderConfig& config,
                                std::span<const mrp::MrpMember> members,
                                std::span<const wire::MrpRegion::Record> regions, GroupOutput& out);
  void on_message(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message,
                  GroupOutput& out);
  void on_sender_group_message(wire::Instant now, wire::Ipv4 from,
                               const wire::SenderGroupMessage& message, GroupOutput& out);
  void on_timer(wire::Instant now, GroupOutput& out);  // Role::deadline()
  // The end of kConnect.
  void connected(wire::Instant now, const Expected<void>& outcome, GroupOutput& out);
  void set_can_receive() { group_.set_can_receive(); }
  // This member leaves the group for good. If it leads, the group ends: Role::has_left().
  void leave(wire::Instant now, GroupOutput& out);
  // The leader's half of the registration, which outlives the group: one of the two, or none.
  Role::Registrations take_registration() { return role_->take_registration(); }

  // --- The source changes.
  // Takes the step that is due, if any.
  void synchronise(GroupOutput& out);
  // The end of kStep.
  void stepped(wire::Instant now, const Expected<void>& outcome, GroupOutput& out);
  // The answer to PairSync::wants_psns().
  void on_psns(wire::Instant now, const Expected<PairSync::Psns>& psns, GroupOutput& out);

  // --- Failures.
  // Asks for lagging members if this member's sends have not ended for long.
  void look_for_lagging_members(wire::Instant now, GroupOutput& out);
  // After all that has arrived was taken in: fails the group if its sends have stalled, or if it
  // waits for data and the other side is gone. Asks for late members if results are missing for
  // long. A program that computes does not call it, and may have its results.
  void look(wire::Instant now, GroupOutput& out);
  // Starts or stops the watch on sends that do not complete.
  void set_watched(bool watched);
  void fail(wire::Instant now, mcast_status_t status, mcast_cause_t cause, std::string reason,
            GroupOutput& out);
  void add_to_reason(const std::string& text) { group_.add_to_reason(text); }

 private:
  // Messages that have moved, and those that are outstanding.
  using Awaited = std::pair<std::uint64_t, unsigned>;

  Expected<void> check_may_lead(std::span<const mrp::MrpMember> members) const;
  void look_for_late_results(wire::Instant now, GroupOutput& out);
  void request_unless_moving(wire::Instant now, Awaited awaited, GroupOutput& out);
  void look_for_stall(wire::Instant now, GroupOutput& out);
  void send_failure(wire::Instant now, GroupOutput& out);

  GroupState group_;
  std::unique_ptr<Role> role_;
  bool watched_ = true;
  bool failure_is_sent_ = false;
  Awaited awaited_{};  // at the last look
  wire::Instant unmoved_since_{};
};

}  // namespace cepheus::mcast
