#include "libmcast/group.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <random>

#include "controller/reject_text.h"
#include "libmcast/context.h"
#include "libmcast/receiver_role.h"
#include "libmcast/work_failure.h"

namespace cepheus::mcast {

Expected<std::unique_ptr<Group>> Group::create(const Facilities& facilities, std::uint32_t number,
                                               const GroupConfig& config) {
  QueueDepths depths = config.depths;
  const auto announced = std::min<std::uint32_t>(depths.send, wire::Announcement::kMostUnderWay);
  if (config.per_request) depths.send += announced;
  auto pair = QueuePair::create(facilities.device, facilities.queues, depths);
  if (!pair) return tl::unexpected(pair.error());
  if (config.sender_group && wire::is_sender_group(wire::Qpn((*pair)->number()))) {
    return mcast::fail(MCAST_ERR_NO_DEVICE,
                       "the device numbers its queue pairs as sender groups number themselves: "
                       "create groups without sender_group");
  }
  std::unique_ptr<Group> group(new Group(facilities, number, config, std::move(*pair)));
  if (config.sender_group) {
    group->role_ =
        std::make_unique<ReceiverRole>(*group, group->member(), facilities.receiver_patience);
  }
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
      lost_member_(config.lost_member),
      virtual_qpn_(config.virtual_qpn),
      timers_(facilities.timers),
      path_mtu_(facilities.device.path_mtu()),
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
  out.mcst_id = role_ ? role_->sender().value() : membership_.id().value();
  out.epoch = role_ ? role_->epoch() : membership_.epoch();
  const std::size_t members = role_           ? role_->member_count()
                              : registration_ ? registration_->member_count()
                                              : 0;
  out.members = static_cast<std::uint32_t>(members);
  out.is_leader = is_leader() ? 1 : 0;
  out.max_message = max_message();
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

Expected<void> Group::check_may_publish() const {
  if (state_ == MCAST_GROUP_FAILED) return mcast::fail(status_, reason_);
  if (role_ && state_ != MCAST_GROUP_WAITING) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "the sender of a sender group is told of regions before it leads: publish "
                       "them before, or create fresh groups");
  }
  return {};
}

Expected<void> Group::check_may_publish(std::uint16_t number) const {
  if (auto may = check_may_publish(); !may) return may;
  return regions_.check_room(number);
}

Expected<void> Group::publish(wire::Instant now, std::uint16_t number, MrHandle& memory) {
  if (auto may = check_may_publish(); !may) return may;
  return regions_.publish(now, number, memory);
}

Expected<void> Group::publish_part(wire::Instant now, std::uint16_t number, const Memory& memory,
                                   std::size_t offset, std::size_t length) {
  if (auto may = check_may_publish(); !may) return may;
  return regions_.publish_part(now, number, memory, offset, length);
}

Expected<MrHandle> Group::revoke(wire::Instant now, std::uint16_t number) {
  if (state_ == MCAST_GROUP_FAILED) return mcast::fail(status_, reason_);
  if (role_) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "regions of a sender group are revoked with the group: destroy it");
  }
  return regions_.revoke(now, number);
}

mcast_status_t Group::regions_status() const {
  if (state_ == MCAST_GROUP_FAILED) return status_;
  if (role_) return status();  // the sender names them when it registers the group
  const bool is_known = state_ != MCAST_GROUP_WAITING;
  return is_known && regions_.is_in_force() ? MCAST_OK : MCAST_INPROGRESS;
}

std::optional<wire::Publication> Group::take_publication(wire::Instant now) {
  if (state_ == MCAST_GROUP_FAILED) return std::nullopt;
  return regions_.take_due(now);
}

Expected<void> Group::check_active() const {
  if (state_ == MCAST_GROUP_ACTIVE) return {};
  if (state_ == MCAST_GROUP_FAILED) return mcast::fail(status_, reason_);
  return mcast::fail(MCAST_ERR_INVALID, "the group is not active yet: wait for mcast_group_test()");
}

std::uint64_t Group::packets_of(std::size_t length) const {
  const std::uint64_t announcements = bulk_ && bulk_->is_announced() ? 1 : 0;
  return announcements + std::max<std::uint64_t>(1, (length + path_mtu_ - 1) / path_mtu_);
}

// Less than the lane's if hosts move their PSNs on (mrp::PsnSync) and the path MTU is small: 2^22
// packets of 256 bytes are 1 GiB, of 512 bytes 2 GiB, which is the longest message of any device.
std::size_t Group::max_message() const {
  const std::size_t most = lane().max_message();
  if (!sync_.is_enabled()) return most;
  return std::min<std::size_t>(most, (mrp::PsnSync::kMostSent + 1 - packets_of(0)) * path_mtu_);
}

Expected<void> Group::check_may_send(std::size_t length) {
  if (role_ && !role_->is_sender()) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "only the member that leads a sender group sends: create groups without "
                       "sender_group, or one for each sender");
  }
  if (auto active = check_active(); !active) return active;
  if (length > max_message() && length <= lane().max_message()) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "a message of " + std::to_string(length) +
                           " bytes: where hosts synchronise their PSNs this path MTU allows " +
                           std::to_string(max_message()) + ", send it in parts");
  }
  if (sync_.has_to_look()) {
    const auto psns = pair_->psns();
    if (!psns) {
      fail(psns.error().status, MCAST_CAUSE_WORK, psns.error().text);
      return mcast::fail(status_, reason_);
    }
    if (psns->send != psns->receive) sync_.received();
  }
  if (sync_.may_send(packets_of(length))) return {};
  sync_.want_to_send();
  context_.note_sync_due(*this);
  return mcast::fail(MCAST_ERR_AGAIN,
                     "the queue pair is being synchronised with the group: call mcast_progress()");
}

void Group::note_sent(std::size_t length) { sync_.sent(packets_of(length)); }

void Group::synchronise(Events& out) {
  if (state_ == MCAST_GROUP_FAILED) {
    ibv_wc flushed{};
    flushed.status = IBV_WC_WR_FLUSH_ERR;
    for (const std::uint64_t id : pair_->take_waiting()) {
      flushed.wr_id = id;
      complete(flushed, out);
    }
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
  sync_.done();
  return {};
}

void Group::on_completion(const ibv_wc& wc, Events& out) {
  const WorkId id = WorkId::unpack(wc.wr_id);
  if (id.is_receive && id.slot == WorkId::kMarker) return sync_.drained();
  const bool was_halted = sync_.is_stopped() && state_ == MCAST_GROUP_ACTIVE;
  if (was_halted && id.is_receive && wc.status == IBV_WC_WR_FLUSH_ERR) {
    pair_->wait(wc.wr_id);
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
  switch (eager_->release(slot, state_ != MCAST_GROUP_FAILED)) {
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
  if (!pair_) return;
  if (pair_->has_waiting()) context_.note_sync_due(*this);
  pair_->stop();
}

void Group::shut_down(Events& out) {
  pair_.reset();
  const std::size_t before = out.size();
  lane().cancel(MCAST_ERR_CANCELED, out);
  for (std::size_t i = before; i < out.size(); ++i) out[i].group = this;
}

}  // namespace cepheus::mcast
