// One member's part in a group, without verbs, sockets and clock: its state, its role, the change of
// the source, and how it finds out that the group has failed.
//
//     in     control datagrams (role()), time, calls of the user, the progress of data (GroupPort)
//     out    control datagrams (mrp::Outbox), steps of the queue pair and of regions (GroupPort),
//            the role's deadline
//
// Makes no callback. One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "controller/mcst_allocator.h"
#include "controller/psn_sync.h"
#include "libmcast/engine/remote_end.h"
#include "libmcast/engine/role.h"
#include "libmcast/engine/watchdog.h"

namespace cepheus::mcast {

// How far the group's data has got here.
struct Flow {
  std::uint64_t messages_sent = 0, messages_received = 0, sends_completed = 0;
  unsigned sends_outstanding = 0, receives_posted = 0;
};

// What the engine has done by its owner, which holds queue pair, lane and regions.
class GroupPort {
 public:
  virtual ~GroupPort() = default;

  virtual Flow flow() const = 0;
  virtual bool can_receive() const = 0;  // somebody is there to hand data to
  virtual Expected<void> connect(const RemoteEnd& remote) = 0;
  // Where switches leave the PSNs at a change of the source to the hosts (mrp::PsnSync). A step is
  // due: GroupEngine::synchronise(), once nothing is left in the completion queues.
  virtual void on_sync_due() = 0;
  virtual Expected<bool> are_psns_apart() = 0;  // the queue pair's, of sending and of receiving
  virtual Expected<void> take_step(mrp::PsnSync::Step step) = 0;
  // The group is of no more use: the queue pair stops.
  virtual void on_failed() = 0;

  // The group is known to the switch, which is told of regions: `header` of any datagram of it.
  virtual void begin_regions(wire::Instant now, const wire::MrpHeader& header) = 0;
  // A CONFIRM. True: with it all is in force that was published and revoked so far.
  virtual bool confirm_regions(wire::Instant now, const wire::MrpHeader& header) = 0;
  virtual bool are_regions_in_force() const = 0;
};

class GroupEngine {
 public:
  struct Config {
    mrp::MrpMember self;
    bool is_sender_group = false;
    wire::Duration sender_patience{}, receiver_patience{};
    wire::Duration asks_after = wire::times::kSenderAsks;  // if its sends have not moved
  };

  GroupEngine(GroupPort& port, const Config& config);
  GroupEngine(const GroupEngine&) = delete;
  GroupEngine& operator=(const GroupEngine&) = delete;

  const mrp::MrpMember& member() const { return self_; }
  bool is_sender_group() const { return is_sender_group_; }
  Role& role() { return *role_; }
  const Role& role() const { return *role_; }
  mcast_group_state_t state() const { return state_; }
  mcast_cause_t cause() const { return cause_; }
  // INPROGRESS until the outcome of the registration is known; then OK or the failure.
  mcast_status_t status() const;
  const std::string& reason() const { return reason_; }
  void add_to_reason(const std::string& text) { reason_ += text; }
  // OK while data may flow.
  Expected<void> check_active() const;
  Expected<void> check_not_failed() const;
  // OK while this member may send.
  Expected<void> check_may_send() const;

  // --- The source changes. AGAIN: before it sends so many packets, the queue pair's PSNs have to be
  // synchronised.
  Expected<void> check_psns(std::uint64_t packets);
  void sent(std::uint64_t packets) { sync_.sent(packets); }
  void received() { sync_.received(); }
  bool moves_psns() const { return sync_.is_enabled(); }
  bool is_halted() const { return sync_.is_stopped() && state_ == MCAST_GROUP_ACTIVE; }
  void drained() { sync_.drained(); }  // all that was posted before the halt came back
  bool is_sync_due(unsigned sends_outstanding) const {
    return sync_.due(sends_outstanding) != mrp::PsnSync::Step::kNone;
  }
  // Takes the step that is due, if any.
  void synchronise();

  // --- Registration. The caller becomes the leader.
  Expected<void> lead(wire::Instant now, const mrp::RegistrationConfig& config,
                      const mrp::McstAllocator::Lease& lease,
                      std::span<const mrp::MrpMember> members, mrp::Outbox& out);
  // The same of a sender group, as SenderRole says.
  Expected<void> lead_as_sender(wire::Instant now, const mrp::SenderConfig& config,
                                std::span<const mrp::MrpMember> members,
                                std::span<const wire::MrpRegion::Record> regions, mrp::Outbox& out);
  // Asks for the members that hold the group up if sends of this member have not ended for long.
  void look_for_laggards(wire::Instant now, mrp::Outbox& out);
  // After completions have been taken in: fails the group if its sends have stalled.
  void look_for_stall(wire::Instant now);
  // Whether sends that do not move mean anything.
  void set_watched(bool watched);
  // If the group has failed here: tells the others, once.
  void tell_failure(wire::Instant now, mrp::Outbox& out);
  // This member leaves the group for good. If it leads, the group ends: Role::has_left().
  void leave(wire::Instant now, mrp::Outbox& out);
  // OK: all that was published and revoked is in force. INPROGRESS, or how the group failed.
  mcast_status_t regions_status() const;
  bool is_settled() const;  // nothing is expected from the control channel soon
  // As its leader, though the program is elsewhere: it refreshes the group, or tells that it
  // failed.
  bool is_on_duty() const;

  // The group is of no more use, first of all failures counts.
  void fail(mcast_status_t status, mcast_cause_t cause, std::string reason);

  // --- What a role makes of its group.
  GroupPort& port() { return port_; }
  const GroupPort& port() const { return port_; }
  // False: it can't, and the group has failed.
  bool connect(const RemoteEnd& remote);
  // `host_sync`: switches leave the PSNs at a change of the source to the hosts.
  void activate(bool host_sync);
  void fail_with(const wire::Error& error, wire::MrpReject reject);  // its registration did
  void calm() { watchdog_.calm(); }  // whoever holds its sends up is alive

 private:
  Expected<void> check_may_lead(std::span<const mrp::MrpMember> members) const;

  GroupPort& port_;
  const mrp::MrpMember self_;
  const bool is_sender_group_;
  const wire::Duration receiver_patience_, asks_after_;
  mcast_group_state_t state_ = MCAST_GROUP_WAITING;
  mcast_status_t status_ = MCAST_INPROGRESS;
  mcast_cause_t cause_ = MCAST_CAUSE_NONE;
  std::string reason_;
  std::unique_ptr<Role> role_;
  mrp::PsnSync sync_;
  Watchdog watchdog_;
  bool watched_ = true;
  bool told_failure_ = false;
  std::pair<std::uint64_t, unsigned> watched_sends_{};  // sent, outstanding
  wire::Instant unmoved_since_{};
};

}  // namespace cepheus::mcast
