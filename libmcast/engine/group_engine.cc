#include "libmcast/engine/group_engine.h"

#include <algorithm>

#include "controller/reject_text.h"
#include "libmcast/engine/leader_role.h"
#include "libmcast/engine/member_role.h"
#include "libmcast/engine/receiver_role.h"
#include "libmcast/engine/sender_role.h"

namespace cepheus::mcast {

GroupEngine::GroupEngine(GroupPort& port, const Config& config)
    : port_(port),
      config_(config),
      path_mtu_(config.path_mtu),
      window_(config.nic_window),
      watchdog_(config.sender_time_limit) {
  if (is_sender_group()) {
    role_ = std::make_unique<ReceiverRole>(*this);
  } else {
    role_ = std::make_unique<MemberRole>(*this);
  }
}

mcast_status_t GroupEngine::status() const {
  if (state_ == MCAST_GROUP_ACTIVE) return MCAST_OK;
  return state_ == MCAST_GROUP_FAILED ? status_ : MCAST_INPROGRESS;
}

Expected<void> GroupEngine::check_not_failed() const {
  if (state_ == MCAST_GROUP_FAILED) return mcast::fail(status_, reason_);
  return {};
}

Expected<void> GroupEngine::check_active() const {
  if (state_ == MCAST_GROUP_ACTIVE) return {};
  if (auto stands = check_not_failed(); !stands) return stands;
  return mcast::fail(MCAST_ERR_INVALID, "the group is not active yet: wait for mcast_group_test()");
}

Expected<void> GroupEngine::check_may_send() const {
  if (auto may = role_->check_may_send(); !may) return may;
  return check_active();
}

// --- The source changes.

Expected<void> GroupEngine::check_psns(std::uint64_t packets) {
  if (sync_.has_to_look()) {
    const auto now = port_.psns();
    if (!now) {
      fail(now.error().status, MCAST_CAUSE_WORK, now.error().text);
      return check_active();
    }
    if (now->send != now->receive) sync_.received();
  }
  if (sync_.may_send(packets)) return {};
  sync_.want_to_send();
  port_.on_sync_due();
  return mcast::fail(MCAST_ERR_AGAIN,
                     "the queue pair is being synchronised with the group: call mcast_progress()");
}

void GroupEngine::synchronise() {
  using Step = mrp::PsnSync::Step;
  if (state_ != MCAST_GROUP_ACTIVE || !is_sync_due()) return;
  step_ = sync_.due(flow_.sends_outstanding);
  if (step_ == Step::kStop) sync_.stopped();
  flushed_ = take_kept();
  const auto done = port_.take_step(*step_, flushed_);
  if (!done) return stepped(tl::unexpected(done.error()));
  if (*done) stepped({});
}

void GroupEngine::stepped(const Expected<void>& outcome) {
  const bool is_running = step_ != mrp::PsnSync::Step::kStop;
  step_.reset();
  if (state_ == MCAST_GROUP_FAILED) return;
  if (!outcome) return fail(outcome.error().status, MCAST_CAUSE_WORK, outcome.error().text);
  if (is_running) {
    flushed_ = take_kept();  // those posted during the step
    if (!port_.post_again(flushed_)) {
      return fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK, "the device refused a receive");
    }
    sync_.done();
  }
  if (is_sync_due()) port_.on_sync_due();
}

// A device may complete work and yet report the PSNs of the driver, which don't move: hosts can't
// synchronise them. The first message shows it, before a wrong PSN is set.
void GroupEngine::check_psn_moves(wire::Psn GroupPort::Psns::*psn) {
  if (!sync_.is_enabled() || psns_move_ || state_ != MCAST_GROUP_ACTIVE) return;
  const auto now = port_.psns();
  if (!now) return fail(now.error().status, MCAST_CAUSE_WORK, now.error().text);
  psns_move_ = (*now).*psn != start_;
  if (!psns_move_) {
    fail(MCAST_ERR_NO_DEVICE, MCAST_CAUSE_DEVICE,
         "the device's PSNs stand still over a message, so hosts can't synchronise them: set "
         "source_change = \"rebase\" on all switches");
  }
}

// --- Work on the queue pair.

void GroupEngine::on_send_posted(std::uint64_t packets) {
  sync_.sent(packets);
  window_.posted(packets);
  ++flow_.messages_sent;
  ++flow_.sends_outstanding;
}

void GroupEngine::on_send_ended(std::uint64_t packets, bool is_delivered) {
  window_.ended(packets);
  --flow_.sends_outstanding;
  ++flow_.sends_completed;
  if (is_delivered) check_psn_moves(&GroupPort::Psns::send);
}

void GroupEngine::on_receive_ended(bool has_data) {
  --flow_.receives_posted;
  if (!has_data) return;
  ++flow_.messages_received;
  sync_.received();
  check_psn_moves(&GroupPort::Psns::receive);
}

bool GroupEngine::keep(KeptReceives& list, std::uint64_t receive) {
  if (is_halted()) list.push_back(receive);
  return is_halted();
}

// A flushed receive is older, even if the program posts before it takes the completion in.
KeptReceives GroupEngine::take_kept() {
  KeptReceives kept = std::exchange(flushed_, {});
  for (const std::uint64_t each : std::exchange(posted_meanwhile_, {})) kept.push_back(each);
  return kept;
}

// --- Registration.

Expected<void> GroupEngine::check_may_lead(std::span<const mrp::MrpMember> members) const {
  if (auto stands = check_not_failed(); !stands) return stands;
  if (!port_.can_receive()) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "set the receive callback before the group is registered");
  }
  const bool listed = std::find(members.begin(), members.end(), member()) != members.end();
  if (!listed) {
    return mcast::fail(MCAST_ERR_INVALID, mrp::to_string(member()) +
                                              ", the leader itself, is not among the members: add "
                                              "mcast_group_member()'s name");
  }
  if (state_ != MCAST_GROUP_WAITING || is_connecting_) {
    return mcast::fail(MCAST_ERR_INVALID, "the group has a leader already: use a fresh group");
  }
  return {};
}

Expected<void> GroupEngine::lead(wire::Instant now, const mrp::RegistrationConfig& config,
                                 const mrp::McstAllocator::Lease& lease,
                                 std::span<const mrp::MrpMember> members, mrp::Outbox& out) {
  if (auto may = check_may_lead(members); !may) return may;
  auto role = std::make_unique<LeaderRole>(*this, config, lease);
  if (auto started = role->start(now, members, out); !started) return started;
  role_ = std::move(role);
  take_part();
  port_.begin_regions(now, out.messages.back().header);
  return {};
}

Expected<void> GroupEngine::lead_as_sender(wire::Instant now, const mrp::SenderConfig& config,
                                           std::span<const mrp::MrpMember> members,
                                           std::span<const wire::MrpRegion::Record> regions,
                                           mrp::Outbox& out) {
  if (auto may = check_may_lead(members); !may) return may;
  auto role = std::make_unique<SenderRole>(*this, config);
  if (auto started = role->start(now, members, regions, out); !started) return started;
  role_ = std::move(role);
  take_part();
  return {};
}

// Of a leader or a sender, which may be faulty: queue pairs know five.
Expected<void> GroupEngine::check_path_mtu(std::uint32_t bytes) const {
  const bool is_known = bytes == 0 || wire::is_path_mtu(bytes);
  const bool fits = config_.path_mtu == 0 || bytes <= config_.path_mtu;
  if (is_known && fits) return {};
  return mcast::fail(MCAST_ERR_REJECTED,
                     "the group's path MTU of " + std::to_string(bytes) + " bytes is " +
                         (is_known ? "larger than this device's " + std::to_string(config_.path_mtu)
                                   : "none of 256, 512, 1024, 2048 and 4096") +
                         ": bring leader, members and switches to the same version");
}

void GroupEngine::connect(wire::Instant now, const RemoteEnd& remote, mrp::Outbox& out) {
  is_connecting_ = true;
  start_ = remote.start;
  if (auto checked = check_path_mtu(remote.path_mtu); !checked) return connected(now, checked, out);
  if (remote.path_mtu != 0) path_mtu_ = remote.path_mtu;
  const auto done = port_.connect(remote);
  if (!done) return connected(now, tl::unexpected(done.error()), out);
  if (*done) connected(now, {}, out);
}

void GroupEngine::connected(wire::Instant now, const Expected<void>& outcome, mrp::Outbox& out) {
  is_connecting_ = false;
  if (!outcome) fail(outcome.error().status, MCAST_CAUSE_REGISTRATION, outcome.error().text);
  role_->on_connected(now, state_ != MCAST_GROUP_FAILED, out);
  if (state_ == MCAST_GROUP_FAILED) send_failure(now, out);  // the program may not poll for long
}

void GroupEngine::activate(bool host_sync, const wire::MrpPath& path) {
  state_ = MCAST_GROUP_ACTIVE;
  window_.open(path.window);
  if (!host_sync) return;
  sync_.enable();
  port_.on_host_sync();
}

mcast_status_t GroupEngine::regions_status() const {
  return state_ == MCAST_GROUP_FAILED ? status_ : role_->regions_status();
}

bool GroupEngine::is_on_duty() const {
  if (!role_->is_leader()) return false;
  const bool is_sending = !failure_is_sent_ || role_->deadline() != wire::kNever;
  return state_ == MCAST_GROUP_ACTIVE || (state_ == MCAST_GROUP_FAILED && is_sending);
}

bool GroupEngine::has_outcome() const {
  return state_ == MCAST_GROUP_FAILED ||
         (state_ == MCAST_GROUP_ACTIVE && regions_status() == MCAST_OK);
}

// --- Failure.

void GroupEngine::set_watched(bool watched) {
  watched_ = watched;
  watched_sends_ = {};
}

void GroupEngine::look_for_lagging_members(wire::Instant now, mrp::Outbox& out) {
  if (state_ != MCAST_GROUP_ACTIVE || !watched_ || flow_.sends_outstanding == 0) return;
  const std::pair sends(flow_.messages_sent, flow_.sends_outstanding);
  if (sends != watched_sends_) {
    watched_sends_ = sends;
    unmoved_since_ = now;
  } else if (now - unmoved_since_ >= config_.requests_after) {
    unmoved_since_ = now;
    role_->send_request(now, out);
  }
}

void GroupEngine::look(wire::Instant now, mrp::Outbox& out) {
  look_for_stall(now);
  role_->look(now, out);
}

void GroupEngine::look_for_stall(wire::Instant now) {
  if (state_ != MCAST_GROUP_ACTIVE) return;
  const bool waiting = watched_ && flow_.sends_outstanding > 0;
  if (!watchdog_.look(now, flow_.sends_completed, waiting)) return;
  fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WATCHDOG,
       "no send completed for " + milliseconds_text(watchdog_.limit()) +
           ": a member or the switch stopped acknowledging, cepheusctl groups shows the lagging "
           "members; "
           "set up again with fresh groups");
}

void GroupEngine::fail(mcast_status_t status, mcast_cause_t cause, std::string reason) {
  if (state_ == MCAST_GROUP_FAILED) return;
  state_ = MCAST_GROUP_FAILED;
  status_ = status;
  cause_ = cause;
  reason_ = std::move(reason);
  port_.on_failed();
}

void GroupEngine::fail_with(const wire::Error& error, wire::MrpReject reject) {
  if (state_ == MCAST_GROUP_ACTIVE) return fail(MCAST_ERR_FABRIC, MCAST_CAUSE_LEADER, error.text);
  const bool taken = reject == wire::MrpReject::kIdInUse;
  fail(taken ? MCAST_ERR_ID_IN_USE : status_of(error.code), MCAST_CAUSE_REGISTRATION, error.text);
}

void GroupEngine::send_failure(wire::Instant now, mrp::Outbox& out) {
  if (state_ != MCAST_GROUP_FAILED || failure_is_sent_) return;
  failure_is_sent_ = true;
  role_->send_failure(now, reason_, out);
}

void GroupEngine::leave(wire::Instant now, mrp::Outbox& out) {
  send_failure(now, out);
  role_->leave(now, out);
}

}  // namespace cepheus::mcast
