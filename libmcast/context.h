// One device port with its groups, behind mcast_context_h.
//
// Two locks. The one thread inside mcast_progress() holds the progress lock, and other threads
// return at once. Threads that destroy hold it too, so groups stay alive while callbacks run. The
// state lock is held for moments and never during a callback. Order: progress, then state.
//
// A device may take long for some calls: RTR waits up to a second for the neighbour of the group's
// address, registration pins 100 ms and more for a gigabyte, and firmware has its own queue. None
// of them is made under the state lock or in progress():
//
//     create a queue pair, INIT, register memory     in the caller's create, publish, send, receive
//     RTR and RTS                                    on the context's thread (slow_calls.h)
//     ERR of a group that has failed                 on that thread
//     ERR, RESET, INIT, RTR, RTS of host-sync        on that thread
//     destroy a queue pair                           in the caller's destroy
//
// A change of state is one step of its group, in which no other thread may destroy the group. Two
// calls remain. A finished operation's own memory is deregistered in progress(), without the state
// lock, before its callback. And under host-sync the state lock is held while PSNs are read: before
// a turn, and after the first message.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "libmcast/completion_queues.h"
#include "libmcast/context_config.h"
#include "libmcast/control_plane.h"
#include "libmcast/control_turns.h"
#include "libmcast/device.h"
#include "libmcast/group.h"
#include "libmcast/keep_alive.h"
#include "libmcast/memory.h"
#include "libmcast/slow_calls.h"

namespace cepheus::mcast {

class Context {
 public:
  static Expected<std::unique_ptr<Context>> create(const ContextConfig& config);
  // Destroys all groups, then waits up to 200 ms until the fabric has confirmed.
  ~Context();

  const Device& device() const { return *device_; }
  // For memory, which may stay registered when the context is gone.
  std::shared_ptr<const Device> share_device() const { return device_; }
  // False in the child of a fork: the device is the parent's, and nothing here may be touched.
  bool is_ours() const;
  std::uint64_t fork_generation() const { return fork_generation_; }

  bool stores_in_process() const { return stores_in_process_; }
  const NicTiming& timing() const { return timing_; }
  wire::Duration sender_time_limit() const {
    return timing_.sender_time_limit(config_.progress_timeout);
  }
  // The parameter that contradicts the NIC, and what to do; empty: none does.
  std::string contradiction() const {
    return mcast::contradiction(timing_, config_.link_outage, config_.progress_timeout);
  }

  unsigned progress();
  // Serves the control channel, device events and stalls in any turn.
  unsigned progress_all();
  // See mcast_context_arm().
  Expected<int> arm();

  Expected<Group*> create_group(const GroupConfig& config);
  // Not from a callback. Waits for the thread that is in progress().
  void destroy_group(Group& group);
  Expected<void> lead(Group& group, std::span<const mrp::MrpMember> members,
                      std::span<const wire::MrpRegion::Record> regions);

  // Not from a callback, once the group is registered: waits for the thread inside progress().
  Expected<void> set_receive(Group& group, mcast_recv_cb_t callback, void* arg);

  // Makes a call of the device on the context's thread, without the state lock, and `then` under it.
  // False: the system gives no thread, and the caller makes the call itself. Under the state lock.
  bool call_apart(Group& group, std::function<Expected<void>()> call,
                  std::function<void(const Expected<void>&)> then);
  // For tests: until no such call is under way.
  void wait_for_calls();
  // Sends the group's messages now.
  void serve_control(Group& group);
  // Fails the group if hosts can't set the device's PSNs; looks once.
  void check_host_sync(Group& group);

  // The group's PSNs are synchronised at the next progress(). Under the state lock.
  void note_sync_due(const Group& group) { sync_due_.push_back(group.number()); }

  // Unused memory: deregistered soon, without the state lock. Both calls need the lock.
  void discard(std::vector<MrHandle> memory);
  bool holds_discarded() const { return !discarded_.empty() || deregistering_ > 0; }

  // All that reads or changes a group.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(state_mutex_); }

 private:
  static constexpr std::size_t kBatch = 32;

  Context(const ContextConfig& config, std::unique_ptr<Device> device,
          std::unique_ptr<ControlChannel> channel);
  Facilities facilities();

  unsigned progress_locked();
  std::size_t poll_completions();
  void deregister_discarded();
  void make_callbacks();
  void synchronise_due();
  unsigned poll_control(bool look_for_device_events);
  void take_device_event(const ibv_async_event& event);
  void poll_device_events();
  void update_keep_alive(bool on_duty);
  void destroy_groups();  // the oldest first
  Group* find_group(std::uint32_t number);

  const ContextConfig config_;
  const std::uint64_t fork_generation_;
  const std::shared_ptr<const Device> device_;
  std::mutex progress_mutex_;
  std::mutex state_mutex_;
  CompletionQueues queues_;
  const NicTiming timing_;
  const std::uint32_t nic_window_;  // see SendWindow
  const bool stores_in_process_;

  // Under the state lock:
  ControlPlane control_plane_;
  MemoryBudget eager_budget_;
  std::uint32_t last_group_ = 0;                // its number
  std::vector<std::unique_ptr<Group>> groups_;  // sorted by number
  std::vector<std::uint32_t> sync_due_;         // numbers of groups, perhaps gone or done
  std::vector<MrHandle> discarded_;
  std::size_t deregistering_ = 0;  // threads that deregister discarded memory
  std::size_t calls_apart_ = 0;    // under way
  std::condition_variable call_ended_;
  std::optional<Expected<void>> host_sync_;  // whether the device serves it, once that is known
  // Under the progress lock:
  std::array<ibv_wc, kBatch> completions_;
  Events events_;
  std::vector<Event> consumed_;  // eager receives that the application gave back
  ControlTurns turns_;
  bool registering_ = false;  // some group waits for the control channel

  KeepAlive keep_alive_;
  SlowCalls slow_calls_;
};

}  // namespace cepheus::mcast
