// A completion queue: a ring that the NIC fills and the program empties, and its notification
// (IBTA 11.4.2).
//
//   arm()   the next completion that counts notifies the channel, once. It notifies at once if such
//           a completion came after the last notification and is still in the queue. So a program
//           that arms, polls and sleeps misses nothing, and completions seen before arming do not
//           wake it (notification.h).
//
// One thread at a time calls push(), under the NIC's lock; all else from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "nic-emulator/engine/verbs_types.h"
#include "nic-emulator/verbs/device/inner_mutex.h"
#include "nic-emulator/verbs/engine_names.h"
#include "nic-emulator/verbs/queues/completion_channel.h"
#include "nic-emulator/verbs/queues/notification.h"
#include "nic-emulator/verbs/queues/slots.h"

namespace cepheus::verbs {

class CompletionQueue {
 public:
  // `channel` may be null; `owner` is the object that it hands out. `armed_queues` counts armed
  // queues: while there are any, the NIC's thread may not leave the work to the program.
  CompletionQueue(std::uint32_t capacity, CompletionChannel* channel, void* owner,
                  std::atomic<int>& armed_queues);
  ~CompletionQueue();

  // False: the queue is full and the completion is lost (IBTA 11.6.3.1, CQ error).
  bool push(const Completion& completion);
  // Passes up to `most` completions to `sink(const Completion&)`, oldest first; returns how
  // many. Frees their requests' slots.
  template <typename Sink>
  int take(int most, Sink&& sink);
  // Drops the completions of a queue pair that is reset or destroyed, as ConnectX does: its number
  // and the program's wr_ids may be used again.
  void forget(Qpn qpn);
  bool is_empty() const {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_relaxed);
  }

  void arm(bool solicited_only);
  // The channel is not used after this; returns how many the program has fetched in all, once.
  std::uint32_t retire();
  // In the child of a fork(), for this and its channel: unlocks, and ends notifications.
  void on_forked();
  // True once, on the first loss.
  bool report_overrun() { return !overrun_reported_.exchange(true); }

  // Changes the size. False, without a change: more completions than that wait.
  bool resize(std::uint32_t capacity);
  std::uint32_t capacity() const {
    const std::scoped_lock lock(mutex_);
    return mask_ + 1;
  }

 private:
  // Runs `change`, which returns whether to notify, and counts armed queues.
  template <typename Change>
  void change_notification(Change&& change);
  void disarm();
  static void free_slots(const Completion& completion) {
    if (completion.owner != nullptr)
      static_cast<Slots*>(completion.owner)->free(completion.requests);
  }

  CompletionChannel* channel_;  // null once retired
  EventSource source_;
  std::atomic<int>& armed_queues_;
  mutable InnerMutex mutex_;  // guards all below; head_ and tail_ are read without it
  std::uint32_t mask_;
  std::unique_ptr<Completion[]> ring_;
  std::atomic<std::uint64_t> head_{0};
  std::atomic<std::uint64_t> tail_{0};
  Notification notification_;
  std::atomic<bool> overrun_reported_{false};
};

template <typename Sink>
int CompletionQueue::take(int most, Sink&& sink) {
  if (is_empty()) return 0;
  const std::scoped_lock lock(mutex_);
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  int taken = 0;
  for (; taken < most && tail != head; ++taken, ++tail) {
    const Completion& completion = ring_[tail & mask_];
    sink(completion);
    free_slots(completion);
  }
  tail_.store(tail, std::memory_order_relaxed);
  return taken;
}

}  // namespace cepheus::verbs
