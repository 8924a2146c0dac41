// Completion queues and channels as verbs programs hold them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "nic-emulator/verbs/abi.h"
#include "nic-emulator/verbs/device/context.h"
#include "nic-emulator/verbs/queues/completion_queue.h"

namespace cepheus::verbs {

class VerbsChannel final : public ibv_comp_channel {
 public:
  VerbsChannel(Context& owner, std::unique_ptr<CompletionChannel> events);
  static VerbsChannel& of(ibv_comp_channel* channel) {
    return *static_cast<VerbsChannel*>(channel);
  }
  CompletionChannel& events() { return *events_; }

 private:
  std::shared_ptr<Context> context_;
  std::unique_ptr<CompletionChannel> events_;
};

// The lock from ibv_start_poll to ibv_end_poll. Another thread's ibv_start_poll waits, or it would
// change the first one's results. Programs may promise that only one thread uses the queue.
class PollLock {
 public:
  explicit PollLock(bool is_needed = true) : is_needed_(is_needed) {}
  bool is_needed() const { return is_needed_; }
  void promise_one_thread() { is_needed_ = false; }
  void lock() {
    if (is_needed_) mutex_.lock();
  }
  void unlock() {
    if (is_needed_) mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  bool is_needed_;
};

class VerbsCq final : public ibv_cq_ex, private Listener {
 public:
  VerbsCq(Context& owner, std::uint32_t entries, void* user_context, ibv_comp_channel* channel);
  // Waits until the program has acknowledged the events that it has fetched, and only those.
  ~VerbsCq();
  static VerbsCq& of(ibv_cq* cq) {
    return *static_cast<VerbsCq*>(reinterpret_cast<ibv_cq_ex*>(cq));
  }
  ibv_cq* as_cq() { return reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(this)); }

  Context& owner() const { return Context::of(context); }
  CqId id() const { return id_; }
  CompletionQueue& queue() { return queue_; }
  // QPs that complete here.
  std::atomic<int>& users() { return users_; }
  // The completion that the extended polling calls read; only between start_poll and end_poll,
  // which hold the lock.
  ibv_wc& current() { return current_; }
  PollLock& poll_lock() { return poll_lock_; }

 private:
  void on_event(ibv_event_type type) override;
  void on_forked() override;

  std::shared_ptr<Context> context_;
  Reference in_nic_;
  std::atomic<int> users_{0};
  CompletionQueue queue_;
  CqId id_ = 0;
  AsyncSource async_source_;
  PollLock poll_lock_;
  ibv_wc current_{};
};

int poll_cq(ibv_cq* cq, int most, ibv_wc* completions);
int req_notify_cq(ibv_cq* cq, int solicited_only);

}  // namespace cepheus::verbs
