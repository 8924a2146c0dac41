#include "libmcast/group.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <random>

#include "controller/reject_text.h"
#include "libmcast/context.h"
#include "libmcast/work_failure.h"

namespace cepheus::mcast {

using Task = mrp::Membership::Task;

namespace {

std::string milliseconds_text(wire::Duration d) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()) + " ms";
}

}  // namespace

Expected<std::unique_ptr<Group>> Group::create(const Facilities& facilities, std::uint32_t number,
                                               const GroupConfig& config) {
  QueueDepths depths = config.depths;
  const auto announced = std::min<std::uint32_t>(depths.send, wire::Announcement::kMostUnderWay);
  if (config.per_request) depths.send += announced;
  auto pair = QueuePair::create(facilities.device, facilities.queues, depths);
  if (!pair) return tl::unexpected(pair.error());
  std::unique_ptr<Group> group(new Group(facilities, number, config, std::move(*pair)));
  if (config.lane == MCAST_LANE_BULK) {
    group->bulk_ =
        std::make_unique<BulkLane>(facilities.device, *group->pair_, number, config.depths);
    if (config.per_request) {
      auto room = AnnouncementRoom::create(facilities.device, announced);
      if (!room) return tl::unexpected(room.error());
      group->bulk_->set_announcements(std::move(*room));
      group->regions_.announce();
    }
    return group;
  }
  auto eager = EagerLane::create(facilities.device, *group->pair_, facilities.eager_budget,
                                 facilities.eager_limit, {number, config.max_eager, config.depths});
  if (!eager) return tl::unexpected(eager.error());
  group->eager_ = std::move(*eager);
  return group;
}

Group::Group(const Facilities& facilities, std::uint32_t number, const GroupConfig& config,
             std::unique_ptr<QueuePair> pair)
    : context_(facilities.context),
      number_(number),
      lane_kind_(config.lane),
      timers_(facilities.timers),
      recv_cb_(config.recv_cb),
      recv_arg_(config.recv_arg),
      watchdog_(facilities.sender_patience),
      presence_(facilities.receiver_patience, pair->number()),
      membership_({facilities.device.ipv4(), wire::Qpn(pair->number()), 0, facilities.control_port,
                   static_cast<std::uint32_t>(std::random_device()())}),
      regions_(facilities.device, config.same_key),
      pair_(std::move(pair)) {}

Lane& Group::lane() { return bulk_ ? static_cast<Lane&>(*bulk_) : *eager_; }
const Lane& Group::lane() const { return bulk_ ? static_cast<const Lane&>(*bulk_) : *eager_; }

mcast_status_t Group::status() const {
  switch (state_) {
    case MCAST_GROUP_ACTIVE:
      return MCAST_OK;
    case MCAST_GROUP_FAILED:
      return status_;
    case MCAST_GROUP_WAITING:
    case MCAST_GROUP_REGISTERING:
      break;
  }
  return MCAST_INPROGRESS;
}

void Group::describe(mcast_group_attr_t& out) const {
  out = {};
  out.state = state_;
  out.lane = lane_kind_;
  out.status = status();
  out.cause = cause_;
  reason_.copy(out.reason, sizeof out.reason - 1);
  out.id = number_;
  out.mcst_id = membership_.id().value();
  out.epoch = membership_.epoch();
  out.members = is_leader() ? static_cast<std::uint32_t>(registration_->member_count()) : 0;
  out.is_leader = is_leader() ? 1 : 0;
  out.max_message = lane().max_message();
  const Traffic& traffic = lane().traffic();
  out.messages_sent = traffic.messages_sent;
  out.bytes_sent = traffic.bytes_sent;
  out.messages_received = traffic.messages_received;
  out.bytes_received = traffic.bytes_received;
  out.sends_outstanding = lane().sends_outstanding();
  out.recvs_posted = lane().receives_posted();
}

Expected<void> Group::set_receive(mcast_recv_cb_t callback, void* arg) {
  if (!eager_ || callback == nullptr) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "only an eager lane has a receive callback, and it needs one");
  }
  if (state_ != MCAST_GROUP_WAITING) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "set the receive callback before the group is registered");
  }
  recv_cb_ = callback;
  recv_arg_ = arg;
  return {};
}

Expected<void> Group::lead(wire::Instant now, const mrp::RegistrationConfig& config,
                           const mrp::McstAllocator::Lease& lease,
                           std::span<const mrp::MrpMember> members, mrp::Outbox& out) {
  if (eager_ && recv_cb_ == nullptr) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "set the receive callback before the group is registered");
  }
  const bool listed = std::find(members.begin(), members.end(), member()) != members.end();
  if (!listed) {
    return mcast::fail(MCAST_ERR_INVALID,
                       mrp::to_string(member()) +
                           ", the leader itself, is not among the members: add what "
                           "mcast_group_member() says");
  }
  if (state_ != MCAST_GROUP_WAITING) {
    return mcast::fail(MCAST_ERR_INVALID, "the group has a leader already: use a fresh group");
  }
  auto registration = std::make_unique<mrp::Registration>(config, lease.id, lease.epoch);
  if (!regions_.is_in_force()) registration->hold();  // others might write before
  if (const auto started = registration->start(now, members, out); !started) {
    return tl::unexpected(failure_of(started.error()));
  }
  const bool free_to_lead = membership_.lead(lease.id, lease.epoch, config.instance);
  assert(free_to_lead);
  static_cast<void>(free_to_lead);
  // Before anybody can answer: the first member to be active may send at once.
  if (auto connected = pair_->connect(lease.id, lease.epoch, timers_); !connected) {
    out.clear();
    fail(connected.error().status, MCAST_CAUSE_REGISTRATION, connected.error().text);
    return tl::unexpected(connected.error());
  }
  registration_ = std::move(registration);
  regions_.begin(now, out.messages.back().header, member());
  state_ = MCAST_GROUP_REGISTERING;
  return {};
}

void Group::on_message(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message,
                       mrp::Outbox& out) {
  const wire::MrpHeader& header = message.header;
  if (header.type == wire::MrpType::kConfirm && regions_.on_confirm(header)) {
    on_regions_confirmed(now, out);
  }
  if (registration_) {
    registration_->on_message(now, from, message, out);
    follow_registration();
  }
  const bool is_register = message.header.type == wire::MrpType::kRegister;
  // Nobody to hand data to yet: the leader repeats what is not answered now.
  if (is_register && eager_ && recv_cb_ == nullptr) return;
  // A leader's own membership only refuses other leaders.
  if (!registration_ || is_register) {
    run_task(now, membership_.on_message(now, from, message, out), header, out);
  }
}

// This member takes part once its regions can be written to.
void Group::on_regions_confirmed(wire::Instant now, mrp::Outbox& out) {
  if (registration_) {
    registration_->release(now, out);
    follow_registration();
  } else if (state_ == MCAST_GROUP_REGISTERING) {
    membership_.connected(now, true, out);
  }
}

Expected<void> Group::publish(wire::Instant now, std::uint16_t number, void* address,
                              std::size_t length) {
  if (state_ == MCAST_GROUP_FAILED) return mcast::fail(status_, reason_);
  return regions_.publish(now, number, address, length);
}

Expected<void> Group::revoke(wire::Instant now, std::uint16_t number) {
  if (state_ == MCAST_GROUP_FAILED) return mcast::fail(status_, reason_);
  return regions_.revoke(now, number);
}

mcast_status_t Group::regions_status() const {
  if (state_ == MCAST_GROUP_FAILED) return status_;
  const bool is_known = state_ != MCAST_GROUP_WAITING;
  return is_known && regions_.is_in_force() ? MCAST_OK : MCAST_INPROGRESS;
}

std::optional<wire::Publication> Group::take_publication(wire::Instant now) {
  if (state_ == MCAST_GROUP_FAILED) return std::nullopt;
  return regions_.take_due(now);
}

void Group::run_task(wire::Instant now, Task task, const wire::MrpHeader& header,
                     mrp::Outbox& out) {
  switch (task) {
    case Task::kNone:
      return;
    case Task::kConnect: {
      const auto connected = state_ == MCAST_GROUP_WAITING
                                 ? pair_->connect(membership_.id(), membership_.epoch(), timers_)
                                 : mcast::fail(MCAST_ERR_FABRIC, reason_);
      if (connected) {
        state_ = MCAST_GROUP_REGISTERING;
        regions_.begin(now, header, member());
      }
      // The switch is told of its regions first: whoever is told that the group is active may write.
      if (!connected || regions_.is_in_force()) {
        membership_.connected(now, connected.has_value(), out);
      }
      if (!connected) {
        fail(connected.error().status, MCAST_CAUSE_REGISTRATION, connected.error().text);
      }
      return;
    }
    case Task::kActivated:
      if (state_ == MCAST_GROUP_REGISTERING) activate(membership_.host_sync());
      return;
    case Task::kWait:
      watchdog_.calm();
      return presence_.heard();
    case Task::kStands:
      return presence_.heard();
    case Task::kDissolved:
      if (membership_.state() == mrp::Membership::State::kFailed) {
        const wire::MrpReject why = membership_.reject_reason();
        fail(why == wire::MrpReject::kNone      ? MCAST_ERR_TIMED_OUT
             : why == wire::MrpReject::kIdInUse ? MCAST_ERR_ID_IN_USE
                                                : MCAST_ERR_REJECTED,
             MCAST_CAUSE_REGISTRATION, mrp::given_up_text(why, membership_.leader()));
      } else if (membership_.reject_reason() == wire::MrpReject::kMemberFailed) {
        fail(MCAST_ERR_FABRIC, MCAST_CAUSE_LEADER,
             "the leader " + membership_.leader().to_string() +
                 " ended the group, since a member failed, perhaps itself: its own reason names "
                 "it; set up again with fresh groups");
      } else if (membership_.reject_reason() == wire::MrpReject::kRemoteAccess) {
        fail(MCAST_ERR_FABRIC, MCAST_CAUSE_LEADER,
             "a WRITE was refused, since some member has no region that holds it: the leader's "
             "reason and cepheusctl groups name that member; set up again with fresh groups");
      } else if (membership_.reject_reason() == wire::MrpReject::kWriteMode) {
        fail(MCAST_ERR_FABRIC, MCAST_CAUSE_LEADER,
             "this fabric's switches can't serve the group's WRITEs: the leader's reason says what "
             "to "
             "do");
      } else if (membership_.reject_reason() == wire::MrpReject::kPathLost) {
        fail(MCAST_ERR_FABRIC, MCAST_CAUSE_LEADER,
             "a trunk on the way to some members is down; set up again with fresh groups, which "
             "take another way if there is one");
      } else if (membership_.reject_reason() == wire::MrpReject::kEvicted) {
        fail(MCAST_ERR_FABRIC, MCAST_CAUSE_LEADER,
             "a member was lost: this one, taken for dead, or one that left in the middle of a "
             "message; set up again with fresh groups");
      } else {
        fail(MCAST_ERR_CANCELED, MCAST_CAUSE_LEADER,
             "the leader " + membership_.leader().to_string() +
                 " unregistered the group: create fresh groups");
      }
  }
}

void Group::follow_registration() {
  using State = mrp::Registration::State;
  if (alive_at_ != registration_->alive_at()) {
    alive_at_ = registration_->alive_at();
    watchdog_.calm();
  }
  if (heard_at_ != registration_->heard_at()) {
    heard_at_ = registration_->heard_at();
    presence_.heard();
  }
  if (state_ == MCAST_GROUP_ACTIVE && registration_->state() == State::kFailed) {
    return fail(MCAST_ERR_FABRIC, MCAST_CAUSE_LEADER, registration_->error().text);
  }
  if (state_ != MCAST_GROUP_REGISTERING) return;
  if (registration_->state() == State::kActive) {
    activate(registration_->host_sync());
  } else if (registration_->state() == State::kFailed) {
    const bool taken = registration_->reject_reason() == wire::MrpReject::kIdInUse;
    fail(taken ? MCAST_ERR_ID_IN_USE : status_of(registration_->error().code),
         MCAST_CAUSE_REGISTRATION, registration_->error().text);
  }
}

void Group::activate(bool host_sync) {
  state_ = MCAST_GROUP_ACTIVE;
  if (host_sync) sync_.enable();
}

void Group::on_timer(wire::Instant now, mrp::Outbox& out) {
  if (!registration_) {
    if (membership_.deadline() <= now) membership_.on_timer(now, out);
    return;
  }
  if (registration_->deadline() > now) return;
  registration_->on_timer(now, out);
  follow_registration();
}

void Group::look_for_laggards(wire::Instant now, mrp::Outbox& out) {
  if (state_ != MCAST_GROUP_ACTIVE || !watched_ || lane().sends_outstanding() == 0) return;
  const std::pair sends(lane().traffic().messages_sent, lane().sends_outstanding());
  if (sends != watched_sends_) {
    watched_sends_ = sends;
    unmoved_since_ = now;
  } else if (now - unmoved_since_ >= mrp::times::kSenderAsks) {
    unmoved_since_ = now;
    if (registration_) {
      registration_->ask(now, out);
    } else {
      membership_.complain(out);
    }
  }
}

void Group::look_for_leader(wire::Instant now, mrp::Outbox& out) {
  if (state_ != MCAST_GROUP_ACTIVE) return;
  const bool waits = lane().receives_posted() > 0;
  switch (presence_.look(now, lane().traffic().messages_received, waits)) {
    case Presence::Step::kNone:
      return;
    case Presence::Step::kAsk:
      return registration_ ? registration_->look(out) : membership_.ask(out);
    case Presence::Step::kGiveUp:
      break;
  }
  fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WATCHDOG,
       (registration_ ? std::string("the switch")
                      : "the leader " + membership_.leader().to_string()) +
           " has not answered for " + milliseconds_text(presence_.limit()) +
           ": it is gone, or the way there is; set up again with fresh groups");
}

void Group::tell_failure(wire::Instant now, mrp::Outbox& out) {
  if (state_ != MCAST_GROUP_FAILED || told_failure_) return;
  told_failure_ = true;
  if (registration_) {
    registration_->give_up(now, reason_, out);
  } else {
    membership_.leave(now, out);
  }
}

wire::Instant Group::deadline() const {
  const wire::Instant of_group = registration_ ? registration_->deadline() : membership_.deadline();
  return std::min(of_group, regions_.deadline());
}

bool Group::is_on_duty() const {
  if (!registration_) return false;
  const bool is_telling = !told_failure_ || registration_->deadline() != wire::kNever;
  return state_ == MCAST_GROUP_ACTIVE || (state_ == MCAST_GROUP_FAILED && is_telling);
}

bool Group::is_settled() const {
  return state_ == MCAST_GROUP_FAILED || (state_ == MCAST_GROUP_ACTIVE && regions_.is_in_force());
}

Expected<void> Group::check_active() const {
  if (state_ == MCAST_GROUP_ACTIVE) return {};
  if (state_ == MCAST_GROUP_FAILED) return mcast::fail(status_, reason_);
  return mcast::fail(MCAST_ERR_INVALID, "the group is not active yet: wait for mcast_group_test()");
}

Expected<void> Group::check_may_send() {
  if (auto active = check_active(); !active) return active;
  if (sync_.may_send()) return {};
  sync_.want_to_send();
  context_.note_sync_due(*this);
  return mcast::fail(MCAST_ERR_AGAIN,
                     "the queue pair is being synchronised with the group: call mcast_progress()");
}

void Group::note_sent() { sync_.sent(); }

void Group::synchronise(Events& out) {
  if (state_ == MCAST_GROUP_FAILED) {
    for (const ibv_wc& wc : flushed_) complete(wc, out);
    flushed_.clear();
  }
  if (state_ != MCAST_GROUP_ACTIVE) return;
  const auto done = take_step(sync_.due(lane().sends_outstanding()));
  if (!done) fail(done.error().status, MCAST_CAUSE_WORK, done.error().text);
}

Expected<void> Group::take_step(mrp::PsnSync::Step step) {
  if (step == mrp::PsnSync::Step::kNone) return {};
  if (step == mrp::PsnSync::Step::kStop) {
    sync_.stopped();
    return pair_->halt(WorkId{number_, true, WorkId::kMarker}.pack());
  }
  const auto take = step == mrp::PsnSync::Step::kReceivePsn ? QueuePair::Take::kSendPsn
                                                            : QueuePair::Take::kReceivePsn;
  const auto done = pair_->synchronise(take, [this] { return lane().post_receives_again(); });
  if (!done) return done;
  flushed_.clear();
  sync_.done();
  return {};
}

void Group::on_completion(const ibv_wc& wc, Events& out) {
  const WorkId id = WorkId::unpack(wc.wr_id);
  if (id.is_receive && id.slot == WorkId::kMarker) return sync_.drained();
  const bool was_halted = sync_.is_stopped() && state_ == MCAST_GROUP_ACTIVE;
  if (was_halted && id.is_receive && wc.status == IBV_WC_WR_FLUSH_ERR) {
    flushed_.push_back(wc);
    return;
  }
  if (wc.status != IBV_WC_SUCCESS) {
    fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK, work_failure_text(wc.status, id.is_receive));
  } else if (id.is_receive) {
    sync_.received();
  }
  complete(wc, out);
}

void Group::complete(const ibv_wc& wc, Events& out) {
  const std::size_t before = out.size();
  lane().on_completion(wc, status_, out);
  for (std::size_t i = before; i < out.size(); ++i) out[i].group = this;
}

bool Group::release_receive(std::uint32_t slot) {
  switch (eager_->release(slot)) {
    case EagerLane::Release::kNotDelivered:
      return false;
    case EagerLane::Release::kRefused:
      fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK,
           "the device refused a receive; set up again with fresh groups");
      return true;
    case EagerLane::Release::kDone:
      break;
  }
  return true;
}

void Group::look_for_stall(wire::Instant now) {
  if (state_ != MCAST_GROUP_ACTIVE) return;
  const bool waiting = watched_ && lane().sends_outstanding() > 0;
  if (!watchdog_.look(now, lane().sends_completed(), waiting)) return;
  fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WATCHDOG,
       "no send completed for " + milliseconds_text(watchdog_.limit()) +
           ": a member or the switch stopped acknowledging, cepheusctl groups shows who lags; "
           "set up again with fresh groups");
}

void Group::fail(mcast_status_t status, mcast_cause_t cause, std::string reason) {
  if (state_ == MCAST_GROUP_FAILED) return;
  state_ = MCAST_GROUP_FAILED;
  regions_.end();
  status_ = status;
  cause_ = cause;
  reason_ = std::move(reason);
  if (!flushed_.empty()) context_.note_sync_due(*this);
  if (pair_) pair_->stop();
}

void Group::shut_down(Events& out) {
  pair_.reset();
  const std::size_t before = out.size();
  lane().cancel(MCAST_ERR_CANCELED, out);
  for (std::size_t i = before; i < out.size(); ++i) out[i].group = this;
}

}  // namespace cepheus::mcast
