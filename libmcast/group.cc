#include "libmcast/group.h"

#include <algorithm>
#include <random>

#include "libmcast/context.h"
#include "libmcast/failure.h"

namespace cepheus::mcast {

Expected<std::unique_ptr<Group>> Group::create(const Facilities& facilities, std::uint32_t number,
                                               const GroupConfig& config) {
  QueueDepths depths = config.depths;
  const auto announced = std::min<std::uint32_t>(depths.send, wire::Announcement::kMostUnderWay);
  if (config.per_request) depths.send += announced;
  if (config.lane == MCAST_LANE_BULK) depths.send += BulkLane::kMostParts;
  auto pair = QueuePair::create(facilities.device, facilities.queues, depths);
  if (!pair) return tl::unexpected(pair.error());
  if (config.sender_group && wire::is_sender_group(wire::Qpn((*pair)->number()))) {
    return mcast::fail(MCAST_ERR_NO_DEVICE,
                       "the device numbers its queue pairs as sender groups number themselves: "
                       "create groups without sender_group");
  }
  std::unique_ptr<Group> group(new Group(facilities, number, config, std::move(*pair)));
  if (config.lane == MCAST_LANE_BULK) {
    group->bulk_ = std::make_unique<BulkLane>(facilities.device, group->engine_, *group->pair_,
                                              number, config.depths);
    if (config.per_request) {
      auto memory =
          AnnouncementMemory::create(facilities.device, group->engine_.path_mtu(), announced);
      if (!memory) return tl::unexpected(memory.error());
      group->bulk_->set_announcements(std::move(*memory));
      group->regions_.announce();
    }
    return group;
  }
  auto eager =
      EagerLane::create(facilities.device, group->engine_, *group->pair_, facilities.eager_budget,
                        {number, config.max_eager, config.depths});
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
      engine_(*this, {{facilities.device.ipv4(), wire::Qpn(pair->number()), 0,
                       facilities.control_port, static_cast<std::uint32_t>(std::random_device()())},
                      static_cast<std::uint16_t>(facilities.device.path_mtu()),
                      config.sender_group,
                      facilities.sender_time_limit,
                      facilities.receiver_time_limit,
                      facilities.nic_window}),
      regions_(facilities.device, config.same_key),
      pair_(std::move(pair)) {}

Lane& Group::lane() { return bulk_ ? static_cast<Lane&>(*bulk_) : *eager_; }
const Lane& Group::lane() const { return bulk_ ? static_cast<const Lane&>(*bulk_) : *eager_; }

mcast_group_attr_t Group::attributes() const {
  mcast_group_attr_t out MCAST_GROUP_ATTR_INIT;
  out.state = state();
  out.lane = lane_kind_;
  out.status = status();
  out.cause = engine_.cause();
  reason().copy(out.reason, sizeof out.reason - 1);
  const Role& role = engine_.role();
  out.mcst_id = role.address().value();
  out.epoch = role.epoch();
  out.members = static_cast<std::uint32_t>(role.member_count());
  out.is_leader = role.is_leader() ? 1 : 0;
  out.max_message = max_message();
  out.window = engine_.window().limit();
  out.portion = bulk_ ? bulk_->portion() : 0;
  out.path_mtu = engine_.path_mtu();
  const Traffic& traffic = lane().traffic();
  out.messages_sent = traffic.messages_sent;
  out.bytes_sent = traffic.bytes_sent;
  out.messages_received = traffic.messages_received;
  out.bytes_received = traffic.bytes_received;
  out.sends_outstanding = engine_.flow().sends_outstanding;
  out.recvs_posted = engine_.flow().receives_posted;
  return out;
}

Expected<void> Group::set_receive(mcast_recv_cb_t callback, void* arg) {
  if (!eager_ || callback == nullptr) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "only an eager lane has a receive callback, and it needs one");
  }
  recv_cb_ = callback;
  recv_arg_ = arg;
  return {};
}

wire::Instant Group::deadline() const {
  return std::min(engine_.role().deadline(), regions_.deadline());
}

// --- Memory that others may write to.

Expected<void> Group::check_may_publish() const {
  if (auto stands = engine_.check_not_failed(); !stands) return stands;
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
  if (auto stands = engine_.check_not_failed(); !stands) return tl::unexpected(stands.error());
  if (auto may = engine_.role().check_may_revoke(); !may) return tl::unexpected(may.error());
  return regions_.revoke(now, number);
}

void Group::begin_regions(wire::Instant now, const wire::MrpHeader& header) {
  regions_.begin(now, header, member());
}

bool Group::confirm_regions(wire::Instant now, const wire::MrpHeader& header) {
  if (!regions_.on_confirm(now, header)) return false;
  context_.discard(regions_.take_revoked());
  return true;
}

Expected<std::vector<wire::MrpRegion::Record>> Group::named_regions() const {
  if (auto may = engine_.role().check_may_name_regions(); !may) return tl::unexpected(may.error());
  std::vector<wire::MrpRegion::Record> list;
  for (const wire::MrpRegion& each : regions_.list()) list.push_back({member().host, each});
  return list;
}

std::optional<wire::Publication> Group::take_publication(wire::Instant now) {
  if (state() == MCAST_GROUP_FAILED) return std::nullopt;
  return regions_.take_due(now);
}

// --- Data.

Expected<bool> Group::connect(const RemoteEnd& remote) {
  if (is_closing_) return false;  // it leaves, and nobody needs to learn of a failure
  was_connected_ = true;
  const auto call = [this, remote] { return pair_->connect(remote, timers_); };
  const auto then = [this](const Expected<void>& outcome) { context_.connected(*this, outcome); };
  if (context_.call_apart(*this, call, then)) return false;
  if (auto done = call(); !done) return tl::unexpected(done.error());
  return true;
}

std::uint64_t Group::packets_of(std::size_t length) const {
  if (bulk_) return bulk_->packets_of(length);
  const std::uint64_t mtu = engine_.path_mtu();
  return std::max<std::uint64_t>(1, (length + mtu - 1) / mtu);
}

// Less than the lane's if hosts move their PSNs on (mrp::PsnSync) and the path MTU is small: 2^22
// packets of 256 bytes are 1 GiB, of 512 bytes 2 GiB, which is the longest message of any device.
std::size_t Group::most_at_once() const {
  const std::size_t most = lane().max_message();
  if (!engine_.moves_psns()) return most;
  return std::min<std::size_t>(most,
                               (mrp::PsnSync::kMostSent + 1 - packets_of(0)) * engine_.path_mtu());
}

// A bulk message is at most as long as the window, unless the NIC keeps to it; WRITEs go in parts.
std::size_t Group::max_message() const {
  const std::size_t longest = engine_.window().longest();
  if (!bulk_ || longest == 0) return most_at_once();
  const std::size_t data = longest + 1 - packets_of(0);  // without its announcement
  return std::min(most_at_once(), std::max<std::size_t>(1, data) * engine_.path_mtu());
}

// A NIC may send all that is posted at once.
Expected<void> Group::check_window(std::size_t length, Sending kind) const {
  const SendWindow& window = engine_.window();
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
  if (auto fits = check_window(length, kind); !fits) return fits;
  return engine_.check_psns(packets_of(length));
}

void Group::on_sync_due() { context_.note_sync_due(*this); }

void Group::synchronise(Events& out) {
  if (state() == MCAST_GROUP_FAILED) {
    ibv_wc flushed{};
    flushed.status = IBV_WC_WR_FLUSH_ERR;
    for (const std::uint64_t id : engine_.take_kept()) {
      flushed.wr_id = id;
      complete(flushed, out);
    }
  }
  engine_.synchronise();
}

Expected<bool> Group::take_step(mrp::PsnSync::Step step, KeptReceives& kept) {
  using Step = mrp::PsnSync::Step;
  if (is_closing_) return false;
  const auto call = [this, step, &kept](bool is_locked) -> Expected<void> {
    if (step == Step::kStop) return pair_->halt(WorkId{number_, true, WorkId::kMarker}.pack());
    const auto take =
        step == Step::kReceivePsn ? QueuePair::Take::kSendPsn : QueuePair::Take::kReceivePsn;
    return pair_->synchronise(take, [&] {
      const auto locked = is_locked ? std::unique_lock<std::mutex>() : context_.lock();
      return post_again(kept);
    });
  };
  const auto then = [this](const Expected<void>& outcome) { engine_.stepped(outcome); };
  if (context_.call_apart(
          *this, [call] { return call(false); }, then))
    return false;
  if (auto done = call(true); !done) return tl::unexpected(done.error());
  return true;
}

void Group::on_host_sync() {
  if (!is_closing_) context_.check_host_sync(*this);
}

// The device completes all posted work, also when the group is failing.
bool Group::post_again(KeptReceives& kept) {
  const auto refused = std::ranges::find_if_not(
      kept, [this](std::uint64_t id) { return lane().post_again(WorkId::unpack(id).slot); });
  kept.erase(kept.begin(), refused);
  return kept.empty();
}

void Group::on_completion(const ibv_wc& wc, Events& out) {
  const WorkId id = WorkId::unpack(wc.wr_id);
  if (id.is_receive && id.slot == WorkId::kMarker) return engine_.drained();
  if (id.is_receive && wc.status == IBV_WC_WR_FLUSH_ERR && engine_.keeps_flushed(wc.wr_id)) return;
  if (wc.status != IBV_WC_SUCCESS) {
    fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK, work_failure_text(wc.status, id.is_receive));
  }
  if (id.slot != WorkId::kMarker) complete(wc, out);  // a marked announcement: its WRITE also ends
}

void Group::complete(const ibv_wc& wc, Events& out) {
  const bool was_active = state() == MCAST_GROUP_ACTIVE;
  if (WorkId::unpack(wc.wr_id).is_receive) {
    engine_.on_receive_ended(wc.status == IBV_WC_SUCCESS);
  } else {
    const std::size_t length = lane().sent_length(WorkId::unpack(wc.wr_id).slot);
    engine_.on_send_ended(packets_of(length), wc.status == IBV_WC_SUCCESS);
  }
  ibv_wc ended = wc;
  // A send shows that the device's PSNs stand still: perhaps nobody has taken it.
  if (was_active && state() == MCAST_GROUP_FAILED && !WorkId::unpack(wc.wr_id).is_receive) {
    ended.status = IBV_WC_WR_FLUSH_ERR;
  }
  const std::size_t before = out.size();
  lane().on_completion(ended, status(), out);
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

void Group::on_failed() {
  regions_.end();
  if (is_closing_) return;
  if (engine_.has_kept()) context_.note_sync_due(*this);
  const auto stop = [this]() -> Expected<void> {
    pair_->stop();
    return {};
  };
  if (!context_.call_apart(*this, stop, [](const Expected<void>&) {})) pair_->stop();
}

void Group::shut_down(Events& out) {
  engine_.drop_work();
  lane().cancel(MCAST_ERR_CANCELED, out);
}

}  // namespace cepheus::mcast
