// One member's side of a group: its queue pair, its lane, and its part in registration, as leader
// or as one of many.
//
// Everything here is under the context's state lock and makes no callback.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "controller/mcst_allocator.h"
#include "controller/membership.h"
#include "controller/psn_sync.h"
#include "controller/registration.h"
#include "libmcast/bulk_lane.h"
#include "libmcast/eager_lane.h"
#include "libmcast/presence.h"
#include "libmcast/published_regions.h"
#include "libmcast/role.h"
#include "libmcast/watchdog.h"

namespace cepheus::mcast {

class Context;

struct GroupConfig {
  mcast_lane_t lane = MCAST_LANE_EAGER;
  std::size_t max_eager = 8192;
  QueueDepths depths{64, 64};
  bool same_key = false;      // of bulk lanes
  bool per_request = false;   // of bulk lanes
  bool sender_group = false;  // of bulk lanes
  wire::Qpn virtual_qpn;      // of sender groups, for the member that leads; 0: it never leads
  mrp::LostMember lost_member = mrp::LostMember::kEvicted;
  mcast_recv_cb_t recv_cb = nullptr;
  void* recv_arg = nullptr;
};

// What a context lends its groups.
struct Facilities {
  Context& context;
  const Device& device;
  CompletionQueues& queues;
  MemoryBudget& eager_budget;
  std::size_t eager_limit;
  Timers timers;
  wire::Duration sender_patience, receiver_patience;
  std::uint16_t control_port;  // where this process takes registration datagrams
};

class Group {
 public:
  // `number` is the process-local name. The queue pair is in INIT, eager receives are posted.
  static Expected<std::unique_ptr<Group>> create(const Facilities& facilities, std::uint32_t number,
                                                 const GroupConfig& config);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  Context& context() const { return context_; }
  std::uint32_t number() const { return number_; }
  const mrp::MrpMember& member() const { return membership_.self(); }
  mcast_group_state_t state() const { return state_; }
  bool is_leader() const { return role_ ? role_->is_sender() : registration_ != nullptr; }
  bool is_sender_group() const { return role_ != nullptr; }
  wire::Qpn virtual_qpn() const { return virtual_qpn_; }  // GroupConfig's
  mrp::LostMember lost_member() const { return lost_member_; }
  // INPROGRESS until the outcome of the registration is known; then OK or the failure.
  mcast_status_t status() const;
  const std::string& reason() const { return reason_; }
  void add_to_reason(const std::string& text) { reason_ += text; }
  void describe(mcast_group_attr_t& out) const;

  Expected<void> set_receive(mcast_recv_cb_t callback, void* arg);

  // --- Registration.
  Expected<void> lead(wire::Instant now, const mrp::RegistrationConfig& config,
                      const mrp::McstAllocator::Lease& lease,
                      std::span<const mrp::MrpMember> members, mrp::Outbox& out);
  void on_message(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message,
                  mrp::Outbox& out);
  // The same of a sender group; `config` without the queue pair and its first PSN. `regions` of
  // `members`, the caller's own among them or not.
  Expected<void> lead_as_sender(wire::Instant now, mrp::SenderConfig config,
                                std::span<const mrp::MrpMember> members,
                                std::span<const wire::MrpRegion::Record> regions, mrp::Outbox& out);
  void on_message(wire::Instant now, wire::Ipv4 from, const wire::SenderGroupMessage& message,
                  mrp::Outbox& out);
  void on_timer(wire::Instant now, mrp::Outbox& out);
  // Asks who holds the group up if sends of this member have not ended for long.
  void look_for_laggards(wire::Instant now, mrp::Outbox& out);
  // Asks whether the group stands if this member waits for data; fails it if nobody answers. After
  // all that has arrived was taken in.
  void look_for_leader(wire::Instant now, mrp::Outbox& out);
  // If the group has failed here: tells the others, once.
  void tell_failure(wire::Instant now, mrp::Outbox& out);
  wire::Instant deadline() const;
  bool is_settled() const;  // nothing is expected from the control channel soon
  // As its leader, though the program is elsewhere: it refreshes the group, or tells that it
  // failed.
  bool is_on_duty() const;
  wire::McstId mcst_id() const { return membership_.id(); }  // unset of sender groups
  // Where its registration is addressed to.
  wire::Ipv4 registers_at() const { return role_ ? role_->peer() : mcst_id(); }
  // The leader's half, to be unregistered after the group itself is gone; null for others.
  std::unique_ptr<mrp::Registration> take_registration() { return std::move(registration_); }
  std::unique_ptr<mrp::SenderRegistration> take_sender_registration() {
    return role_ ? role_->take_registration() : nullptr;
  }
  // What a role makes of its group. connect() fails the group if it can't: false.
  bool connect(const RemoteEnd& remote);
  void activate() { state_ = MCAST_GROUP_ACTIVE; }
  void calm() { watchdog_.calm(); }  // whoever holds its sends up is alive

  // --- Memory that others may write to.
  Expected<void> check_may_publish(std::uint16_t number) const;
  // Needs no lock; for publish().
  Expected<MrHandle> register_region(std::uint16_t number, void* address,
                                     std::size_t length) const {
    return regions_.register_region(number, address, length);
  }
  Expected<void> publish(wire::Instant now, std::uint16_t number, MrHandle& memory);
  Expected<void> publish_part(wire::Instant now, std::uint16_t number, const Memory& memory,
                              std::size_t offset, std::size_t length);
  // What the caller deregisters now, without the state lock; may be null.
  Expected<MrHandle> revoke(wire::Instant now, std::uint16_t number);
  // What the sender of a sender group must be told of this member's memory. INVALID: it is no sender
  // group's.
  Expected<std::vector<wire::MrpRegion::Record>> named_regions() const;
  // OK: all that was published and revoked is in force. INPROGRESS, or how the group failed.
  mcast_status_t regions_status() const;
  // What a WRITE to `offset` of region `number` names.
  RegionPlace place_in(std::uint16_t number, std::uint64_t offset) const {
    return {regions_.rkey_of(number), offset};
  }
  // What the switch should be told now.
  std::optional<wire::Publication> take_publication(wire::Instant now);

  // --- Data.
  EagerLane* eager() { return eager_.get(); }
  BulkLane* bulk() { return bulk_.get(); }
  Lane& lane();
  const Lane& lane() const;
  // OK while data may flow.
  Expected<void> check_active() const;
  // ... and this member may send `length` bytes. AGAIN: its PSNs have to be synchronised first, which
  // Context::progress() does.
  Expected<void> check_may_send(std::size_t length);
  void note_sent(std::size_t length);
  // A step of PSN synchronisation is due, and what it takes: nothing may be left in the completion
  // queues. A group that failed in the middle of it completes what was flushed on the way.
  bool is_sync_due() const {
    return sync_.due(lane().sends_outstanding()) != mrp::PsnSync::Step::kNone;
  }
  void synchronise(Events& out);
  void on_completion(const ibv_wc& wc, Events& out);
  mcast_status_t receive(void* data, std::size_t length, std::uint32_t imm) const {
    return recv_cb_(recv_arg_, data, length, imm);
  }
  // The application has done with an eager receive. False: it did not hold that buffer.
  bool release_receive(std::uint32_t slot);

  // The group is of no more use: the queue pair stops, its work completes with `status`.
  void fail(mcast_status_t status, mcast_cause_t cause, std::string reason);
  // After completions have been taken in: fails the group if its sends have stalled.
  void look_for_stall(wire::Instant now);
  // Whether sends that do not move mean anything.
  void set_watched(bool watched) {
    watched_ = watched;
    watched_sends_ = {};
  }
  // Destroys the queue pair; what was outstanding is called back with MCAST_ERR_CANCELED.
  void shut_down(Events& out);

 private:
  Group(const Facilities& facilities, std::uint32_t number, const GroupConfig& config,
        std::unique_ptr<QueuePair> pair);
  Expected<void> check_may_publish() const;
  Expected<void> check_lists(std::span<const mrp::MrpMember> members) const;
  void run_task(wire::Instant now, mrp::Membership::Task task, const wire::MrpHeader& header,
                mrp::Outbox& out);
  void on_regions_confirmed(wire::Instant now, mrp::Outbox& out);
  void follow_registration();
  void activate_with(bool host_sync);
  Expected<void> take_step(mrp::PsnSync::Step step);
  void complete(const ibv_wc& wc, Events& out);
  std::uint64_t packets_of(std::size_t length) const;
  std::size_t max_message() const;

  Context& context_;
  const std::uint32_t number_;
  const mcast_lane_t lane_kind_;
  const mrp::LostMember lost_member_;
  const wire::Qpn virtual_qpn_;
  const Timers timers_;
  const std::uint32_t path_mtu_;  // bytes
  mcast_recv_cb_t recv_cb_;
  void* recv_arg_;
  mcast_group_state_t state_ = MCAST_GROUP_WAITING;
  mcast_status_t status_ = MCAST_INPROGRESS;
  mcast_cause_t cause_ = MCAST_CAUSE_NONE;
  std::string reason_;
  Watchdog watchdog_;
  Presence presence_;
  bool watched_ = true;
  bool told_failure_ = false;
  mrp::PsnSync sync_;
  mrp::Membership membership_;
  std::unique_ptr<mrp::Registration> registration_;
  std::unique_ptr<Role> role_;  // of a sender group, which has neither of the two above
  std::pair<std::uint64_t, unsigned> watched_sends_{};  // sent, outstanding
  wire::Instant unmoved_since_{};
  wire::Instant alive_at_{}, heard_at_{};  // as Registration says, when it was last looked at
  // Receives point into the eager lane's slab and may be written until the pair is gone: the pair
  // goes first.
  std::unique_ptr<EagerLane> eager_;
  std::unique_ptr<BulkLane> bulk_;
  PublishedRegions regions_;
  std::unique_ptr<QueuePair> pair_;
};

}  // namespace cepheus::mcast
