#include "soft-roce/verbs/completion_queue.h"

#include <algorithm>
#include <bit>

namespace cepheus::verbs {
namespace {

// Positions run freely and wrap; `a` is later than `b` within half the circle.
bool later(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) > 0; }

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

bool CompletionQueue::push(const Completion& c) {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t head = head_.load(std::memory_order_relaxed);
  if (head - tail_.load(std::memory_order_relaxed) > mask_) return false;
  ring_[head & mask_] = c;
  head_.store(head + 1, std::memory_order_release);
  const bool counts_always = c.solicited || c.status != WcStatus::kSuccess;
  if (counts_always) solicited_ = head + 1;
  if (arm_ == Arm::kAny || (arm_ == Arm::kSolicited && counts_always)) notify();
  return true;
}

bool CompletionQueue::resize(std::uint32_t capacity) {
  const std::uint32_t mask = mask_of(capacity);
  std::unique_ptr<Completion[]> ring(new Completion[std::size_t{mask} + 1]);
  const std::scoped_lock lock(mutex_);
  const std::uint32_t head = head_.load(std::memory_order_relaxed);
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  if (head - tail > mask + 1) return false;
  for (std::uint32_t at = tail; at != head; ++at) ring[at & mask] = ring_[at & mask_];
  ring_ = std::move(ring);
  mask_ = mask;
  return true;
}

void CompletionQueue::arm(bool solicited_only) {
  if (channel_ == nullptr) return;
  const std::scoped_lock lock(mutex_);
  if (!solicited_only) {
    set_arm(Arm::kAny);
  } else if (arm_ == Arm::kNo) {
    set_arm(Arm::kSolicited);
  }
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  const std::uint32_t last = arm_ == Arm::kAny ? head_.load(std::memory_order_relaxed) : solicited_;
  if (later(last, tail) && later(last, notified_)) notify();
}

std::uint32_t CompletionQueue::retire() {
  if (channel_ == nullptr) return 0;
  const std::scoped_lock lock(mutex_);
  set_arm(Arm::kNo);
  return channel_->withdraw(source_);
}

void CompletionQueue::set_arm(Arm arm) {
  if ((arm_ == Arm::kNo) != (arm == Arm::kNo)) armed_queues_.fetch_add(arm == Arm::kNo ? -1 : 1);
  arm_ = arm;
}

void CompletionQueue::notify() {
  set_arm(Arm::kNo);
  notified_ = head_.load(std::memory_order_relaxed);
  channel_->notify(source_);
}

}  // namespace cepheus::verbs
