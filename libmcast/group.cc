#include "libmcast/group.h"

#include <algorithm>
#include <random>
#include <utility>

#include "libmcast/context.h"
#include "wire/clock.h"

namespace cepheus::mcast {
namespace {

// The port's MTU is read once: it may change meanwhile, and a reduction's slots have its size.
GroupSettings settings_of(const Facilities& facilities, const GroupConfig& config, wire::Qpn qpn) {
  const auto path_mtu = static_cast<std::uint16_t>(facilities.device.path_mtu());
  GroupSettings settings{
      .self = {facilities.device.ipv4(), qpn, 0, facilities.control_port,
               static_cast<std::uint32_t>(std::random_device()())},
      .path_mtu = path_mtu,
      .is_sender_group = config.sender_group,
      .sender_time_limit = facilities.sender_time_limit,
      .receiver_time_limit = facilities.receiver_time_limit,
      .nic_window = facilities.nic_window,
      .can_receive = config.lane != MCAST_LANE_EAGER || config.recv_cb != nullptr};
  if (config.reduction_window > 0) {
    settings.reduction = {config.reduction_kind, std::min(path_mtu, wire::MrpReduction::kMostUnit),
                          config.reduction_window};
  }
  return settings;
}

}  // namespace

Expected<std::unique_ptr<Group>> Group::create(const Facilities& facilities, std::uint32_t number,
                                               const GroupConfig& config) {
  QueueDepths depths = config.depths;
  const auto announced = std::min<std::uint32_t>(depths.send, wire::Announcement::kMostUnderWay);
  if (config.per_request) depths.send += announced;
  if (config.lane == MCAST_LANE_BULK) depths.send += BulkLane::kMostParts;
  if (const std::uint32_t window = config.reduction_window; window > 0) {
    depths = {ReductionUnits::most_sends(window), window};
  }
  auto pair = QueuePair::create(facilities.device, facilities.queues, depths);
  if (!pair) return tl::unexpected(pair.error());
  if (config.sender_group && wire::is_sender_group(wire::Qpn((*pair)->number()))) {
    return mcast::fail(MCAST_ERR_NO_DEVICE,
                       "the device numbers its queue pairs as sender groups number themselves: "
                       "create groups without sender_group");
  }
  std::unique_ptr<Group> group(new Group(facilities, number, config, std::move(*pair)));
  if (config.lane == MCAST_LANE_BULK) {
    group->bulk_ = std::make_unique<BulkLane>(facilities.device, group->engine_.work(),
                                              *group->pair_, number, config.depths);
    if (config.per_request) {
      auto memory =
          AnnouncementMemory::create(facilities.device, group->work().path_mtu(), announced);
      if (!memory) return tl::unexpected(memory.error());
      group->bulk_->set_announcements(std::move(*memory));
      group->regions_.announce();
    }
    return group;
  }
  if (const auto& reduction = group->engine_.group().settings().reduction) {
    auto lane = ReductionLane::create(facilities.device, group->engine_.work(), *group->pair_,
                                      facilities.eager_budget, number, *reduction);
    if (!lane) return tl::unexpected(lane.error());
    group->reduction_ = std::move(*lane);
    return group;
  }
  auto eager =
      EagerLane::create(facilities.device, group->engine_.work(), *group->pair_,
                        facilities.eager_budget, {number, config.max_eager, config.depths});
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
      recv_cb_(config.recv_cb),
      recv_arg_(config.recv_arg),
      engine_(settings_of(facilities, config, wire::Qpn(pair->number()))),
      regions_(facilities.device, engine_.regions(), config.same_key),
      pair_(std::move(pair)) {}

const Lane& Group::lane() const {
  if (bulk_) return *bulk_;
  if (reduction_) return *reduction_;
  return *eager_;
}
Lane& Group::lane() { return const_cast<Lane&>(std::as_const(*this).lane()); }

mcast_group_attr_t Group::attributes() const {
  mcast_group_attr_t out MCAST_GROUP_ATTR_INIT;
  out.state = state();
  out.lane = lane_kind_;
  out.status = status();
  out.cause = engine_.group().cause();
  reason().copy(out.reason, sizeof out.reason - 1);
  const Role& role = engine_.role();
  out.mcst_id = role.address().value();
  out.epoch = role.epoch();
  out.members = static_cast<std::uint32_t>(role.member_count());
  out.members_missing = static_cast<std::uint32_t>(role.missing_count());
  out.is_leader = role.is_leader() ? 1 : 0;
  out.is_flat = role.pairs().are_flat ? 1 : 0;
  out.is_ascending = role.pairs().ascend ? 1 : 0;
  out.max_message = max_message();
  out.window = work().window().limit();
  out.portion = bulk_ ? bulk_->portion() : 0;
  out.path_mtu = work().path_mtu();
  const Traffic& traffic = lane().traffic();
  out.messages_sent = traffic.messages_sent;
  out.bytes_sent = traffic.bytes_sent;
  out.messages_received = traffic.messages_received;
  out.bytes_received = traffic.bytes_received;
  out.sends_outstanding = work().flow().sends_outstanding;
  out.recvs_posted = work().flow().receives_posted;
  return out;
}

Expected<void> Group::set_receive(mcast_recv_cb_t callback, void* arg) {
  if (!eager_ || callback == nullptr) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "only an eager lane has a receive callback, and it needs one");
  }
  recv_cb_ = callback;
  recv_arg_ = arg;
  engine_.set_can_receive();
  return {};
}

wire::Instant Group::deadline() const {
  return std::min(engine_.role().deadline(), engine_.group().regions().deadline());
}

// --- Memory that others may write to.

Expected<void> Group::check_may_publish() const {
  if (reduction_) {
    return mcast::fail(MCAST_ERR_INVALID, "a reduction group has no regions: use a bulk lane");
  }
  if (auto stands = engine_.group().check_not_failed(); !stands) return stands;
  return engine_.role().check_may_publish();
}

Expected<void> Group::check_may_publish(std::uint16_t number) const {
  if (auto may = check_may_publish(); !may) return may;
  return regions_.check_free(number);
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
  if (auto stands = engine_.group().check_not_failed(); !stands)
    return tl::unexpected(stands.error());
  if (auto may = engine_.role().check_may_revoke(); !may) return tl::unexpected(may.error());
  return regions_.revoke(now, number);
}

Expected<std::vector<wire::MrpRegion::Record>> Group::named_regions() const {
  if (auto may = engine_.role().check_may_name_regions(); !may) return tl::unexpected(may.error());
  std::vector<wire::MrpRegion::Record> list;
  for (const wire::MrpRegion& each : regions_.list()) list.push_back({member().host, each});
  return list;
}

std::optional<wire::Publication> Group::take_publication(wire::Instant now) {
  if (state() == MCAST_GROUP_FAILED) return std::nullopt;
  return engine_.regions().take_due(now);
}

// --- Actions.

void Group::fail(mcast_status_t status, mcast_cause_t cause, const std::string& reason) {
  handle(&GroupEngine::fail, wire::monotonic_now(), status, cause, reason);
}

// An action may end in an event, whose actions follow.
void Group::carry_out() {
  while (const auto action = output_.take_action()) perform(*action);
  if (regions_.has_revoked()) context_.discard(regions_.take_revoked());
}

void Group::perform(const GroupAction& action) {
  switch (action.kind) {
    case GroupAction::Kind::kConnect:
      return connect(action.remote);
    case GroupAction::Kind::kCheckHostSync:
      if (!is_closing_) context_.check_host_sync(*this);
      return;
    case GroupAction::Kind::kStep:
      return take_step(action.step);
    case GroupAction::Kind::kPostReceives:
      if (post_kept()) return;
      return fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK, "the device refused a receive");
    case GroupAction::Kind::kStop:
      return stop();
  }
}

void Group::connect(const RemoteEnd& remote) {
  if (is_closing_) return;  // it leaves, and nobody needs to learn of a failure
  was_connected_ = true;
  if (reduction_) reduction_->begin(engine_.role().epoch());
  const auto call = [this, remote] { return pair_->connect(remote, timers_); };
  const auto then = [this](const Expected<void>& outcome) {
    handle(&GroupEngine::connected, wire::monotonic_now(), outcome);
    context_.serve_control(*this);
  };
  if (!context_.call_apart(*this, call, then)) then(call());
}

void Group::take_step(PairSync::Step step) {
  if (is_closing_) return;
  const auto call = [this, step](bool is_locked) -> Expected<void> {
    if (step == PairSync::Step::kStop) {
      return pair_->halt(WorkId{number_, true, WorkId::kMarker}.pack());
    }
    const auto take = step == PairSync::Step::kReceivePsn ? QueuePair::Take::kSendPsn
                                                          : QueuePair::Take::kReceivePsn;
    return pair_->synchronise(take, [&] {
      const auto locked = is_locked ? std::unique_lock<std::mutex>() : context_.lock();
      return post_kept();
    });
  };
  const auto then = [this](const Expected<void>& outcome) {
    handle(&GroupEngine::stepped, wire::monotonic_now(), outcome);
    note_sync_due();
  };
  if (!context_.call_apart(
          *this, [call] { return call(false); }, then))
    then(call(true));
}

// The device completes all posted work, also when the group is failing.
bool Group::post_kept() {
  PairSync& sync = engine_.work().sync();
  KeptReceives kept = sync.take_kept();
  const auto refused = std::ranges::find_if_not(
      kept, [this](std::uint64_t id) { return lane().post_again(WorkId::unpack(id).slot); });
  kept.erase(kept.begin(), refused);
  sync.put_back(std::move(kept));
  return !sync.has_kept();
}

void Group::stop() {
  if (is_closing_) return;
  if (work().sync().has_kept()) context_.note_sync_due(*this);
  const auto stop = [this]() -> Expected<void> {
    pair_->stop();
    return {};
  };
  if (!context_.call_apart(*this, stop, [](const Expected<void>&) {})) pair_->stop();
}

// --- Data.

std::uint64_t Group::packets_of(std::size_t length) const {
  if (bulk_) return bulk_->packets_of(length);
  const std::uint64_t mtu = work().path_mtu();
  return std::max<std::uint64_t>(1, (length + mtu - 1) / mtu);
}

// Less than the lane's if hosts move their PSNs on (mrp::PsnSync) and the path MTU is small: 2^22
// packets of 256 bytes are 1 GiB, of 512 bytes 2 GiB, which is the longest message of any device.
std::size_t Group::most_at_once() const {
  const std::size_t most = lane().max_message();
  if (!work().sync().is_enabled()) return most;
  return std::min<std::size_t>(most,
                               (mrp::PsnSync::kMostSent + 1 - packets_of(0)) * work().path_mtu());
}

// A bulk message or a reduction is at most as long as the window, unless the NIC keeps to it.
// WRITEs go in parts.
std::size_t Group::max_message() const {
  const std::size_t longest = work().window().longest();
  if (eager_ || longest == 0) return most_at_once();
  const std::size_t data = longest + 1 - packets_of(0);  // without its announcement
  return std::min(most_at_once(), std::max<std::size_t>(1, data) * work().path_mtu());
}

// A NIC may send all that is posted at once.
Expected<void> Group::check_window(std::size_t length, Sending kind) const {
  const SendWindow& window = work().window();
  const std::size_t most = kind == Sending::kWhole ? max_message() : most_at_once();
  if (length > most && length <= lane().max_message()) {
    const std::string why =
        most == most_at_once()
            ? "where hosts synchronise their PSNs this path MTU allows "
            : "a queue on the way takes " + std::to_string(window.longest()) + " packets, so ";
    return mcast::fail(MCAST_ERR_INVALID, "a message of " + std::to_string(length) +
                                              " bytes: " + why + std::to_string(most) +
                                              " at most (mcast_group_query), send it in parts");
  }
  const std::size_t first =
      kind == Sending::kInParts ? std::min(length, bulk_->longest_part()) : length;
  if (window.admits(packets_of(first))) return {};
  return mcast::fail(MCAST_ERR_AGAIN, std::to_string(window.limit()) +
                                          " packets may be under way, which a queue on the way "
                                          "takes: call mcast_progress()");
}

Expected<void> Group::check_may_send(std::size_t length, Sending kind) {
  if (auto may = engine_.check_may_send(); !may) return may;
  if (kind == Sending::kByUnits) return engine_.group().check_active();
  if (auto fits = check_window(length, kind); !fits) return fits;
  read_psns_if_wanted();
  if (auto stands = engine_.group().check_active(); !stands) return stands;
  auto may = engine_.work().sync().check_send(packets_of(length));
  if (!may) note_sync_due();
  return may;
}

void Group::read_psns_if_wanted() {
  if (!work().sync().wants_psns()) return;
  handle(&GroupEngine::on_psns, wire::monotonic_now(), pair_->psns());
}

void Group::note_sync_due() {
  if (work().is_sync_due()) context_.note_sync_due(*this);
}

void Group::synchronise(Events& out) {
  if (state() == MCAST_GROUP_FAILED) {
    ibv_wc flushed{};
    flushed.status = IBV_WC_WR_FLUSH_ERR;
    for (const std::uint64_t id : engine_.work().sync().take_kept()) {
      flushed.wr_id = id;
      complete(flushed, out);
    }
  }
  handle(&GroupEngine::synchronise);
}

void Group::on_completion(const ibv_wc& wc, Events& out) {
  const WorkId id = WorkId::unpack(wc.wr_id);
  if (id.is_receive && id.slot == WorkId::kMarker) return engine_.work().sync().drained();
  const bool is_flushed = id.is_receive && wc.status == IBV_WC_WR_FLUSH_ERR;
  if (is_flushed && engine_.work().sync().keeps_flushed(wc.wr_id)) return;
  if (wc.status != IBV_WC_SUCCESS && state() != MCAST_GROUP_FAILED) {
    fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK,
         work_failure_text(wc.status, id.is_receive, reduction_ != nullptr));
  }
  if (id.slot != WorkId::kMarker) complete(wc, out);  // a marked announcement: its WRITE also ends
}

void Group::complete(const ibv_wc& wc, Events& out) {
  const bool was_active = state() == MCAST_GROUP_ACTIVE;
  if (WorkId::unpack(wc.wr_id).is_receive) {
    engine_.work().on_receive_ended(wc.status == IBV_WC_SUCCESS);
  } else {
    const std::uint32_t slot = WorkId::unpack(wc.wr_id).slot;
    engine_.work().on_send_ended(packets_of(lane().sent_length(slot)), wc.status == IBV_WC_SUCCESS,
                                 lane().sends_of(slot));
  }
  if (wc.status == IBV_WC_SUCCESS) read_psns_if_wanted();
  ibv_wc ended = wc;
  // A send shows that the device's PSNs stand still: perhaps nobody has taken it.
  if (was_active && state() == MCAST_GROUP_FAILED && !WorkId::unpack(wc.wr_id).is_receive) {
    ended.status = IBV_WC_WR_FLUSH_ERR;
  }
  const std::size_t before = out.size();
  lane().on_completion(ended, status(), out);
  if (const auto fault = lane().fault(); !fault.empty()) {
    fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK, std::string(fault));
  }
  for (std::size_t i = before; i < out.size(); ++i) out[i].group = this;
}

bool Group::release_receive(std::uint32_t slot) {
  const EagerLane::Release released = eager_->release(slot, state() != MCAST_GROUP_FAILED);
  if (released == EagerLane::Release::kRefused) {
    fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK,
         "the device refused a receive; set up again with fresh groups");
  }
  return released != EagerLane::Release::kNotDelivered;
}

void Group::shut_down(Events& out) {
  engine_.work().drop();
  lane().cancel(MCAST_ERR_CANCELED, out);
}

}  // namespace cepheus::mcast
