// The part of a group's engine that its role shares: how far the group has come, how it failed, and
// the outputs of a call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/publisher.h"
#include "controller/registration.h"
#include "libmcast/engine/posted_work.h"
#include "libmcast/engine/presence.h"
#include "libmcast/engine/watchdog.h"

namespace cepheus::mcast {

struct GroupSettings {
  mrp::MrpMember self;
  std::uint16_t path_mtu = 0;  // the largest of its device, bytes; 0: no limit is known
  bool is_sender_group = false;
  std::optional<wire::MrpReduction> reduction = {};  // of a reduction group, alike on all members
  wire::Duration sender_time_limit{}, receiver_time_limit{};
  std::uint32_t nic_window = 0;  // see SendWindow
  wire::Duration sender_lives = wire::times::kSenderLives;
  wire::Duration requests_after = wire::times::kSenderRequests;  // if its sends have not moved
  Presence::Pace presence = {};                                  // ... or it waits for data
  bool can_receive = true;  // the application has set a receive callback
};

struct GroupAction {
  enum class Kind : std::uint8_t {
    kConnect,        // the queue pair to `remote`, up to RTS; then GroupEngine::connected()
    kCheckHostSync,  // switches leave the PSNs to the hosts: if the device can't move them, fail()
    // kStop halts the queue pair: all posted work comes back flushed, see PairSync::keeps_flushed().
    // The other steps start it again with one of its PSNs, and post PairSync::take_kept() on the
    // way. Then GroupEngine::stepped().
    kStep,
    kPostReceives,  // PairSync::take_kept()
    kStop,          // the group has failed: to ERR
  };
  Kind kind;
  RemoteEnd remote{};
  mrp::PsnSync::Step step{};
};

// Outputs of one call of the engine; the caller owns it, and passes it again. It takes and performs
// each action. Then it sends the messages, and clears them.
struct GroupOutput : mrp::Outbox {
  std::vector<GroupAction> actions;

  // The first one, which may add more when it is performed.
  std::optional<GroupAction> take_action() {
    if (actions.empty()) return std::nullopt;
    const GroupAction first = actions.front();
    actions.erase(actions.begin());
    return first;
  }
};

class GroupState {
 public:
  GroupState(const GroupSettings& settings, mrp::Publisher regions);
  GroupState(const GroupState&) = delete;
  GroupState& operator=(const GroupState&) = delete;

  const GroupSettings& settings() const { return settings_; }
  const mrp::MrpMember& member() const { return settings_.self; }
  mcast_group_state_t state() const { return state_; }
  mcast_cause_t cause() const { return cause_; }
  // INPROGRESS until the outcome of the registration is known; then OK or the failure.
  mcast_status_t status() const;
  const std::string& reason() const { return reason_; }
  void add_to_reason(const std::string& text) { reason_ += text; }
  // OK while data may flow.
  Expected<void> check_active() const;
  Expected<void> check_not_failed() const;

  PostedWork& work() { return work_; }
  const PostedWork& work() const { return work_; }
  mrp::Publisher& regions() { return regions_; }
  const mrp::Publisher& regions() const { return regions_; }
  Watchdog& watchdog() { return watchdog_; }  // of sends

  bool can_receive() const { return settings_.can_receive; }
  void set_can_receive() { settings_.can_receive = true; }
  // Registration has begun: a leader has named this member, or it leads.
  void take_part() {
    if (state_ == MCAST_GROUP_WAITING) state_ = MCAST_GROUP_REGISTERING;
  }
  // Role::on_connected() follows, unless this is false: the group is not being registered, or has
  // failed over this.
  // `remote` without a path MTU: the settings' is used.
  bool connect(RemoteEnd remote, GroupOutput& out);
  bool is_connecting() const { return is_connecting_; }
  void connected() { is_connecting_ = false; }
  // `host_sync`: switches leave the PSNs at a change of the source to the hosts. `path`: what the
  // group's ways can take.
  void activate(bool host_sync, const wire::MrpPath& path, GroupOutput& out);
  // The group is of no more use, first of all failures counts.
  void fail(mcast_status_t status, mcast_cause_t cause, std::string reason, GroupOutput& out);
  // Its registration has failed.
  void fail_with(const wire::Error& error, wire::MrpReject reject, GroupOutput& out);

 private:
  Expected<void> check_path_mtu(std::uint32_t bytes) const;

  GroupSettings settings_;
  mcast_group_state_t state_ = MCAST_GROUP_WAITING;
  mcast_status_t status_ = MCAST_INPROGRESS;
  mcast_cause_t cause_ = MCAST_CAUSE_NONE;
  std::string reason_;
  bool is_connecting_ = false;
  PostedWork work_;
  mrp::Publisher regions_;
  Watchdog watchdog_;
};

}  // namespace cepheus::mcast
