// The ring's capacity is the next power of two. 64-bit head and tail only grow; their difference is
// the number of completions. forget() moves the kept completions to the new end, so that only the
// tail changes.
//
// Memory is allocated by the constructor and resize() only. A full ring refuses the new completion
// and keeps the old ones. This lock is held while the channel is notified.
#include "nic-emulator/verbs/queues/completion_queue.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace cepheus::verbs {
namespace {

std::uint32_t mask_of(std::uint32_t capacity) { return std::bit_ceil(std::max(capacity, 1u)) - 1; }

}  // namespace

CompletionQueue::CompletionQueue(std::uint32_t capacity, CompletionChannel* channel, void* owner,
                                 std::atomic<int>& armed_queues)
    : channel_(channel),
      source_(owner),
      armed_queues_(armed_queues),
      mask_(mask_of(capacity)),
      ring_(new Completion[std::size_t{mask_} + 1]) {}

CompletionQueue::~CompletionQueue() { retire(); }

template <typename Change>
void CompletionQueue::change_notification(Change&& change) {
  const bool was_armed = notification_.is_armed();
  const bool fires = change();
  if (const bool is_armed = notification_.is_armed(); is_armed != was_armed) {
    armed_queues_.fetch_add(is_armed ? 1 : -1);
  }
  if (fires) channel_->notify(source_);
}

bool CompletionQueue::push(const Completion& c) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  if (head - tail_.load(std::memory_order_relaxed) > mask_) return false;
  ring_[head & mask_] = c;
  head_.store(head + 1, std::memory_order_release);
  const bool counts_always = c.solicited || c.status != WcStatus::kSuccess;
  change_notification([&] { return notification_.pushed(head + 1, counts_always); });
  return true;
}

void CompletionQueue::forget(Qpn qpn) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  std::uint64_t kept = head;  // the oldest kept so far
  for (std::uint64_t at = head; at-- != tail;) {
    if (ring_[at & mask_].qpn == qpn) {
      free_slots(ring_[at & mask_]);
    } else {
      ring_[--kept & mask_] = ring_[at & mask_];
    }
  }
  if (kept == tail) return;
  tail_.store(kept, std::memory_order_relaxed);
  notification_.moved_up(tail, head);
}

bool CompletionQueue::resize(std::uint32_t capacity) {
  const std::uint32_t mask = mask_of(capacity);
  std::unique_ptr<Completion[]> ring(new Completion[std::size_t{mask} + 1]);
  const std::scoped_lock lock(mutex_);
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (head - tail > std::uint64_t{mask} + 1) return false;
  for (std::uint64_t at = tail; at != head; ++at) ring[at & mask] = ring_[at & mask_];
  ring_ = std::move(ring);
  mask_ = mask;
  return true;
}

void CompletionQueue::arm(bool solicited_only) {
  if (channel_ == nullptr) return;
  const std::scoped_lock lock(mutex_);
  change_notification([&] {
    return notification_.armed(solicited_only, tail_.load(std::memory_order_relaxed),
                               head_.load(std::memory_order_relaxed));
  });
}

std::uint32_t CompletionQueue::retire() {
  if (channel_ == nullptr) return 0;
  const std::scoped_lock lock(mutex_);
  disarm();
  return std::exchange(channel_, nullptr)->withdraw(source_);
}

void CompletionQueue::on_forked() {
  new (&mutex_) InnerMutex;
  disarm();
  if (channel_ != nullptr) channel_->on_forked();
}

void CompletionQueue::disarm() {
  change_notification([&] {
    notification_.disarm();
    return false;
  });
}

}  // namespace cepheus::verbs
