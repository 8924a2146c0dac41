// One member's part in a group, without verbs, sockets and clock: its state, its role, the change
// of the source, and the detection of failures.
//
//     in     control datagrams (role()), time, calls of the user, posts and completions
//     out    control datagrams (mrp::Outbox), steps of the queue pair and of regions (GroupPort),
//            the role's deadline
//
// Makes no callback. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "controller/mcst_allocator.h"
#include "controller/psn_sync.h"
#include "libmcast/engine/presence.h"
#include "libmcast/engine/remote_end.h"
#include "libmcast/engine/role.h"
#include "libmcast/engine/send_window.h"
#include "libmcast/engine/watchdog.h"

namespace cepheus::mcast {

// Counts of the group's data here.
struct Flow {
  std::uint64_t messages_sent = 0, messages_received = 0, sends_completed = 0;
  unsigned sends_outstanding = 0, receives_posted = 0;
};

// Receives that a halted queue pair does not have, by the names that they complete with; in the
// order of posting.
using KeptReceives = std::vector<std::uint64_t>;

// The engine's actions. Its owner, which holds queue pair, lane and regions, performs them.
class GroupPort {
 public:
  virtual ~GroupPort() = default;

  virtual bool can_receive() const = 0;  // the application has set a receive callback
  // To RTS. True: it is done. False: it takes its time, and GroupEngine::connected() tells the end.
  virtual Expected<bool> connect(const RemoteEnd& remote) = 0;
  // A step of PSN synchronisation is due, because the switches leave PSNs to the hosts
  // (mrp::PsnSync). The owner calls GroupEngine::synchronise() once the completion queues are
  // empty.
  virtual void on_sync_due() = 0;
  // The queue pair's, of sending and of receiving: the next ones.
  struct Psns {
    wire::Psn send, receive;
  };
  virtual Expected<Psns> psns() = 0;
  // kStop halts the queue pair: all posted work comes back flushed, see keeps_flushed(). The other
  // steps start it again with one of its PSNs, and post `kept` again on the way. True: it is done.
  // False: it takes its time, and GroupEngine::stepped() tells the end.
  virtual Expected<bool> take_step(mrp::PsnSync::Step step, KeptReceives& kept) = 0;
  // Posts receives again, and removes those that the device has taken: false if it refuses one.
  virtual bool post_again(KeptReceives& kept) = 0;
  // Switches leave the PSNs to the hosts: the owner checks that its device can move them, and fails
  // the group if it can't.
  virtual void on_host_sync() = 0;
  // The group has failed: stops the queue pair.
  virtual void on_failed() = 0;

  // The switch knows the group and accepts publications: `header` of any datagram of it.
  virtual void begin_regions(wire::Instant now, const wire::MrpHeader& header) = 0;
  // A CONFIRM. True: all publications and revocations so far are in force.
  virtual bool confirm_regions(wire::Instant now, const wire::MrpHeader& header) = 0;
  virtual bool are_regions_in_force() const = 0;
};

class GroupEngine {
 public:
  struct Config {
    mrp::MrpMember self;
    std::uint16_t path_mtu = 0;  // the largest of its device, bytes; 0: no limit is known
    bool is_sender_group = false;
    wire::Duration sender_time_limit{}, receiver_time_limit{};
    std::uint32_t nic_window = 0;  // see SendWindow
    wire::Duration sender_lives = wire::times::kSenderLives;
    wire::Duration requests_after = wire::times::kSenderRequests;  // if its sends have not moved
    Presence::Pace presence = {};                                  // ... or it waits for data
  };

  GroupEngine(GroupPort& port, const Config& config);
  GroupEngine(const GroupEngine&) = delete;
  GroupEngine& operator=(const GroupEngine&) = delete;

  const Config& config() const { return config_; }
  const mrp::MrpMember& member() const { return config_.self; }
  bool is_sender_group() const { return config_.is_sender_group; }
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

  // --- The source changes. AGAIN: this number of packets needs synchronised PSNs first.
  Expected<void> check_psns(std::uint64_t packets);
  bool moves_psns() const { return sync_.is_enabled(); }
  bool is_halted() const { return sync_.is_stopped() && state_ == MCAST_GROUP_ACTIVE; }
  void drained() { sync_.drained(); }  // all that was posted before the halt came back
  bool is_sync_due() const {
    return !step_ && sync_.due(flow_.sends_outstanding) != mrp::PsnSync::Step::kNone;
  }
  // Takes the step that is due, if any.
  void synchronise();
  bool is_stepping() const { return step_.has_value(); }
  // The end of a step that took its time.
  void stepped(const Expected<void>& outcome);

  // --- Work on the queue pair.
  // Payload bytes of a packet: the group's once it is connected, before that the device's.
  std::uint32_t path_mtu() const { return path_mtu_; }
  const Flow& flow() const { return flow_; }
  const SendWindow& window() const { return window_; }
  void on_send_posted(std::uint64_t packets);
  // `packets` as posted.
  void on_send_ended(std::uint64_t packets, bool is_delivered);
  void on_receive_posted() { ++flow_.receives_posted; }
  void on_receive_ended(bool has_data);
  // A receive is to be posted. True: the queue pair is halted, and the receive waits for it.
  bool keeps(std::uint64_t receive) { return keep(posted_meanwhile_, receive); }
  // A receive came back flushed. True: the queue pair is halted, and the receive waits to be posted
  // again; it has not ended.
  bool keeps_flushed(std::uint64_t receive) { return keep(flushed_, receive); }
  // The kept receives of a group that failed while its queue pair was halted. They end here,
  // because the device does not know them.
  KeptReceives take_kept();
  bool has_kept() const { return !flushed_.empty() || !posted_meanwhile_.empty(); }
  // The queue pair is gone, with all posted work.
  void drop_work() {
    flow_.sends_outstanding = flow_.receives_posted = 0;
    window_.drop();
  }

  // --- Registration. The caller becomes the leader.
  Expected<void> lead(wire::Instant now, const mrp::RegistrationConfig& config,
                      const mrp::McstAllocator::Lease& lease,
                      std::span<const mrp::MrpMember> members, mrp::Outbox& out);
  // The same of a sender group, see SenderRole.
  Expected<void> lead_as_sender(wire::Instant now, const mrp::SenderConfig& config,
                                std::span<const mrp::MrpMember> members,
                                std::span<const wire::MrpRegion::Record> regions, mrp::Outbox& out);
  // Asks for lagging members if this member's sends have not ended for long.
  void look_for_lagging_members(wire::Instant now, mrp::Outbox& out);
  // After all that has arrived was taken in: fails the group if its sends have stalled, or if it
  // waits for data and the other side is gone.
  void look(wire::Instant now, mrp::Outbox& out);
  // Starts or stops the watch on sends that do not complete.
  void set_watched(bool watched);
  // If the group has failed here: sends that to the others, once.
  void send_failure(wire::Instant now, mrp::Outbox& out);
  // This member leaves the group for good. If it leads, the group ends: Role::has_left().
  void leave(wire::Instant now, mrp::Outbox& out);
  // OK: all that was published and revoked is in force. INPROGRESS, or how the group failed.
  mcast_status_t regions_status() const;
  // The end of a connect that took its time.
  void connected(wire::Instant now, const Expected<void>& outcome, mrp::Outbox& out);
  bool has_outcome() const;  // nothing is expected from the control channel soon
  // The leader has work while the program makes no calls: refresh the group, or send its failure.
  bool is_on_duty() const;

  // The group is of no more use, first of all failures counts.
  void fail(mcast_status_t status, mcast_cause_t cause, std::string reason);

  // --- Calls of a role.
  GroupPort& port() { return port_; }
  const GroupPort& port() const { return port_; }
  // Role::on_connected() follows, perhaps at once. If it can't, the group has failed then.
  void connect(wire::Instant now, const RemoteEnd& remote, mrp::Outbox& out);
  bool is_connecting() const { return is_connecting_; }
  // A leader has named this member.
  void take_part() {
    if (state_ == MCAST_GROUP_WAITING) state_ = MCAST_GROUP_REGISTERING;
  }
  // `host_sync`: switches leave the PSNs at a change of the source to the hosts. `path`: what the
  // group's ways can take.
  void activate(bool host_sync, const wire::MrpPath& path = {});
  void renew(const wire::MrpPath& path) { window_.renew(path.window); }
  void fail_with(const wire::Error& error, wire::MrpReject reject);  // its registration did
  void reset_watchdog() { watchdog_.reset(); }  // the lagging members are alive

 private:
  bool keep(KeptReceives& list, std::uint64_t receive);
  void check_psn_moves(wire::Psn GroupPort::Psns::*psn);
  void look_for_stall(wire::Instant now);
  Expected<void> check_path_mtu(std::uint32_t bytes) const;
  Expected<void> check_may_lead(std::span<const mrp::MrpMember> members) const;

  GroupPort& port_;
  const Config config_;
  mcast_group_state_t state_ = MCAST_GROUP_WAITING;
  mcast_status_t status_ = MCAST_INPROGRESS;
  mcast_cause_t cause_ = MCAST_CAUSE_NONE;
  std::string reason_;
  std::unique_ptr<Role> role_;
  bool is_connecting_ = false;
  std::uint32_t path_mtu_;
  Flow flow_;
  SendWindow window_;
  mrp::PsnSync sync_;
  std::optional<mrp::PsnSync::Step> step_;   // under way
  wire::Psn start_;                          // of the queue pair, when it was connected
  bool psns_move_ = false;                   // as this group has seen
  KeptReceives flushed_, posted_meanwhile_;  // while the queue pair is halted
  Watchdog watchdog_;
  bool watched_ = true;
  bool failure_is_sent_ = false;
  std::pair<std::uint64_t, unsigned> watched_sends_{};  // sent, outstanding
  wire::Instant unmoved_since_{};
};

}  // namespace cepheus::mcast
