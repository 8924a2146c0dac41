// progress(): batches of completions and their callbacks, kMaxBatches at most; then PSNs that are
// due to be synchronised. In its turn, or while a group is being registered, it also serves the
// control channel and device events. Callbacks run under the progress lock alone.
//
// destroy_group(): close the group, wait for its slow calls, and take it out under both locks. Its
// queue pair ends without locks, and then canceled operations are called back.
//
// A device event fails all groups that it reaches. The destructor waits kUnregisterTimeLimit at
// most. Without a thread for keep-alive, progress() alone refreshes the groups.
#include "libmcast/context.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>

#include "libmcast/device_events.h"
#include "libmcast/forks.h"
#include "wire/clock.h"
#include "wire/nonblocking.h"

namespace cepheus::mcast {
namespace {

// Batches of completions per call of progress(): bounded, so that it returns under any load.
constexpr int kMaxBatches = 8;
constexpr wire::Duration kUnregisterTimeLimit = std::chrono::milliseconds(200);
constexpr auto kUnregisterStep = std::chrono::microseconds(500);

// A member's own mistakes are what the others only report.
bool may_have_better_reason(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
      return false;
    default:
      return true;
  }
}

std::string device_event_text(ibv_event_type type) {
  return std::string("the device reports: ") + ibv_event_type_str(type) +
         "; set up again with fresh groups once it serves again";
}

}  // namespace

Expected<std::unique_ptr<Context>> Context::create(const ContextConfig& config) {
  auto device = Device::open(config.device);
  if (!device) return tl::unexpected(device.error());
  // Device events are looked for, never waited for.
  if (!wire::set_nonblocking((*device)->context()->async_fd)) {
    return fail(MCAST_ERR_NO_DEVICE, errno_text("can't look for the device's events", errno));
  }
  auto channel = ControlChannel::open(**device, config.mrp_port);
  if (!channel) return tl::unexpected(channel.error());
  return std::unique_ptr<Context>(new Context(config, std::move(*device), std::move(*channel)));
}

Context::Context(const ContextConfig& config, std::unique_ptr<Device> device,
                 std::unique_ptr<ControlChannel> channel)
    : config_(config),
      fork_generation_(current_fork_generation()),
      device_(std::move(device)),
      queues_(*device_, state_mutex_),
      timing_(timing_of(config, *device_, *channel)),
      nic_window_(nic_window_of(*device_, *channel)),
      stores_in_process_(channel->stores_in_process()),
      control_plane_(control_plane_config(config, *device_, timing_), std::move(channel)),
      eager_budget_(config.max_eager_memory),
      keep_alive_([this] {
        const wire::Instant time = wire::monotonic_now();
        auto locked = lock();
        control_plane_.poll(time);
        const wire::Instant next = control_plane_.is_on_duty() ? std::min(control_plane_.deadline(),
                                                                          time + wire::times::kLook)
                                                               : wire::kNever;
        locked.unlock();
        deregister_discarded();
        return next;
      }) {}

Context::~Context() {
  destroy_groups();
  keep_alive_.stop();
  const wire::Instant limit = wire::monotonic_now() + kUnregisterTimeLimit;
  for (;;) {
    const wire::Instant time = wire::monotonic_now();
    control_plane_.poll(time);
    if (!control_plane_.is_unregistering() || time >= limit) break;
    // Neither kind of channel can be waited for together with the repeats' deadline.
    std::this_thread::sleep_for(kUnregisterStep);
  }
}

bool Context::is_ours() const { return fork_generation_ == current_fork_generation(); }

Facilities Context::facilities() {
  return {*this,
          *device_,
          queues_,
          eager_budget_,
          timing_.timers(),
          sender_time_limit(),
          receiver_time_limit(config_.progress_timeout),
          nic_window_,
          control_plane_.control_port()};
}

// --- Groups.

Expected<Group*> Context::create_group(const GroupConfig& config) {
  std::uint32_t number = 0;
  {
    const auto locked = lock();
    number = ++last_group_;
  }
  auto group = Group::create(facilities(), number, config);
  if (!group) return tl::unexpected(group.error());
  const auto locked = lock();
  const auto at = std::ranges::upper_bound(groups_, number, {}, &Group::number);
  Group& added = **groups_.insert(at, std::move(*group));
  control_plane_.add(added);
  return &added;
}

void Context::destroy_group(Group& group) {
  std::unique_ptr<Group> owned;  // ends without locks: it may have much memory
  {
    auto locked = lock();
    group.close();
    call_ended_.wait(locked, [&] { return !group.has_calls(); });
  }
  std::unique_lock progress(progress_mutex_);
  Events canceled;
  bool on_duty = false;
  {
    const auto locked = lock();
    group.shut_down(canceled);
    control_plane_.remove(wire::monotonic_now(), group);
    // Not earlier, or the others would hear that it failed.
    group.fail(MCAST_ERR_CANCELED, MCAST_CAUSE_NONE, "the group was destroyed");
    const auto at = std::find_if(groups_.begin(), groups_.end(),
                                 [&](const auto& each) { return each.get() == &group; });
    owned = std::move(*at);
    groups_.erase(at);
    on_duty = control_plane_.is_on_duty();
  }
  update_keep_alive(on_duty);
  progress.unlock();
  owned->drop_pair();  // before the program gets its buffers back
  progress.lock();
  for (Event& e : canceled) {
    e.deregister();
    e.op->done(e.op, e.status, e.length, e.imm);
  }
}

bool Context::call_apart(Group& group, std::function<Expected<void>()> call,
                         std::function<void(const Expected<void>&)> then) {
  const bool is_added =
      slow_calls_.add([this, &group, call = std::move(call), then = std::move(then)] {
        Expected<void> outcome;
        try {
          outcome = call();
        } catch (const std::exception& e) {
          outcome = fail(MCAST_ERR_NO_MEMORY, e.what());
        }
        const auto locked = lock();
        try {
          then(outcome);
        } catch (const std::exception& e) {  // want of memory
          group.fail(MCAST_ERR_NO_MEMORY, MCAST_CAUSE_WORK, e.what());
        }
        group.count_call(-1);
        --calls_apart_;
        call_ended_.notify_all();
      });
  if (!is_added) return false;
  group.count_call(1);
  ++calls_apart_;
  return true;
}

void Context::wait_for_calls() {
  auto locked = lock();
  call_ended_.wait(locked, [this] { return calls_apart_ == 0; });
}

void Context::serve_control(Group& group) { control_plane_.serve(wire::monotonic_now(), group); }

void Context::check_host_sync(Group& group) {
  const auto judge = [this, &group](const Expected<void>& outcome) {
    if (!host_sync_) host_sync_ = outcome;
    if (outcome) return;
    group.fail(MCAST_ERR_NO_DEVICE, MCAST_CAUSE_DEVICE,
               outcome.error().text +
                   ": its queue pairs don't serve again after an error, so hosts can't synchronise "
                   "PSNs; set source_change = \"rebase\" on all switches");
  };
  if (host_sync_) return judge(*host_sync_);
  call_apart(
      group, [this] { return QueuePair::check_comes_back(*device_, queues_); }, judge);
}

void Context::discard(std::vector<MrHandle> memory) {
  std::ranges::move(memory, std::back_inserter(discarded_));
}

void Context::deregister_discarded() {
  std::vector<MrHandle> memory;
  {
    const auto locked = lock();
    if (discarded_.empty()) return;
    memory.swap(discarded_);
    ++deregistering_;
  }
  memory.clear();
  const auto locked = lock();
  --deregistering_;
}

void Context::destroy_groups() {
  for (;;) {
    Group* oldest = nullptr;
    {
      const auto locked = lock();
      if (groups_.empty()) return;
      oldest = groups_.front().get();
    }
    destroy_group(*oldest);
  }
}

Expected<void> Context::lead(Group& group, std::span<const mrp::MrpMember> members,
                             std::span<const wire::MrpRegion::Record> regions) {
  const auto locked = lock();
  return control_plane_.lead(wire::monotonic_now(), group, members, regions);
}

Expected<void> Context::set_receive(Group& group, mcast_recv_cb_t callback, void* arg) {
  std::unique_lock progress(progress_mutex_, std::defer_lock);
  auto locked = lock();
  if (group.has_receive_calls()) {
    locked.unlock();
    progress.lock();
    locked.lock();
  }
  return group.set_receive(callback, arg);
}

Group* Context::find_group(std::uint32_t number) {
  const auto at = std::ranges::lower_bound(groups_, number, {}, &Group::number);
  return at == groups_.end() || (*at)->number() != number ? nullptr : at->get();
}

// --- Progress.

unsigned Context::progress() {
  const std::unique_lock progress(progress_mutex_, std::try_to_lock);
  return progress ? progress_locked() : 0;  // another thread does it
}

unsigned Context::progress_all() {
  const std::unique_lock progress(progress_mutex_, std::try_to_lock);
  if (!progress) return 0;
  turns_.hasten();
  return progress_locked();
}

unsigned Context::progress_locked() {
  std::size_t done = 0;
  for (int batch = 0; batch < kMaxBatches; ++batch) {
    const std::size_t n = poll_completions();
    make_callbacks();
    done += n;
    if (n == kBatch) continue;
    synchronise_due();  // nothing is left in the queues that a RESET could lose
    make_callbacks();
    break;
  }
  const bool has_turn = turns_.take(wire::coarse_now());
  if (has_turn || registering_) done += poll_control(has_turn);
  return static_cast<unsigned>(done);
}

Expected<int> Context::arm() {
  const std::unique_lock progress(progress_mutex_, std::try_to_lock);
  if (!progress) {
    return fail(MCAST_ERR_AGAIN,
                "a thread is inside mcast_progress(): arm on the thread that makes progress, and "
                "not from a callback");
  }
  const auto locked = lock();
  if (std::ranges::any_of(groups_, [](const auto& each) { return each->is_stepping(); })) {
    return fail(MCAST_ERR_AGAIN, "a queue pair is being synchronised: call mcast_progress()");
  }
  const int fd = queues_.arm();
  if (fd < 0) {
    return fail(MCAST_ERR_NO_DEVICE, device_->name() +
                                         " has no completion channel: poll mcast_progress() "
                                         "instead of sleeping");
  }
  turns_.hasten();  // the caller sleeps
  return fd;
}

std::size_t Context::poll_completions() {
  const auto locked = lock();
  const std::size_t n = queues_.poll(completions_);
  Group* group = nullptr;
  for (const ibv_wc& wc : std::span(completions_).first(n)) {
    const std::uint32_t number = WorkId::unpack(wc.wr_id).group;
    if (group == nullptr || group->number() != number) group = find_group(number);
    if (group == nullptr) continue;  // destroyed meanwhile
    // The switch may just have sent the reason, which is better than the queue pair's.
    if (may_have_better_reason(wc.status)) control_plane_.poll(wire::monotonic_now());
    group->on_completion(wc, events_);
    group->note_sync_due();
  }
  registering_ = control_plane_.is_busy();
  return n;
}

void Context::synchronise_due() {
  const auto locked = lock();
  for (std::size_t i = 0; i < sync_due_.size(); ++i) {  // a group that fails adds itself
    if (Group* group = find_group(sync_due_[i])) group->synchronise(events_);
  }
  sync_due_.clear();
}

void Context::make_callbacks() {
  for (Event& e : events_) {
    if (e.op != nullptr) {
      e.deregister();
      e.op->done(e.op, e.status, e.length, e.imm);
    } else if (e.group->receive(e.group->eager()->receive_data(e.slot), e.length, e.imm) !=
               MCAST_INPROGRESS) {
      consumed_.push_back(std::move(e));
    }
  }
  events_.clear();
  if (consumed_.empty()) return;
  const auto locked = lock();
  for (const Event& e : consumed_) e.group->release_receive(e.slot);
  consumed_.clear();
}

unsigned Context::poll_control(bool look_for_device_events) {
  unsigned done = 0;
  bool on_duty = false;
  {
    const auto locked = lock();
    done = control_plane_.poll(wire::monotonic_now());
    on_duty = control_plane_.is_on_duty();
    if (look_for_device_events) {
      poll_device_events();
      control_plane_.look(wire::monotonic_now());
    }
  }
  update_keep_alive(on_duty);
  deregister_discarded();
  return done;
}

// Under the progress lock, not the state lock, which the thread takes.
void Context::update_keep_alive(bool on_duty) {
  if (!on_duty) {
    keep_alive_.stop();
  } else {
    try {
      keep_alive_.start();
    } catch (const std::system_error&) {
      // No thread to be had: mcast_progress() refreshes the groups as long as it is called.
    }
  }
}

void Context::poll_device_events() {
  ibv_async_event event{};
  while (ibv_get_async_event(device_->context(), &event) == 0) {
    take_device_event(event);
    ibv_ack_async_event(&event);
  }
}

void Context::take_device_event(const ibv_async_event& event) {
  const EventReach reach = reach_of(event, device_->port());
  for (const auto& group : groups_) {
    const bool hits = reach.all || (reach.qpn && group->member().qpn == *reach.qpn);
    if (!hits) continue;
    group->fail(MCAST_ERR_FABRIC, MCAST_CAUSE_DEVICE, device_event_text(event.event_type));
  }
}

}  // namespace cepheus::mcast
