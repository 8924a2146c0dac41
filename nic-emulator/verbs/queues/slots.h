// A work queue's slots as libraries of hardware NICs count them: posting takes a slot, and polling
// the request's completion frees it. An unsignaled request's slot is freed with a later one's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cepheus::verbs {

class Slots {
 public:
  explicit Slots(std::uint32_t count) : count_(count) {}

  // Under the NIC's lock.
  bool has_free(std::size_t requests = 1) const { return used() + requests <= count_; }
  void take(std::size_t requests = 1) { taken_ += requests; }
  std::uint64_t used() const { return taken_ - freed_.load(std::memory_order_relaxed); }
  void resize(std::uint32_t count) { count_ = count; }
  // Its queue is empty, and no completion of it is left.
  void clear() { freed_.store(taken_, std::memory_order_relaxed); }

  // From any thread.
  void free(std::uint32_t requests) { freed_.fetch_add(requests, std::memory_order_relaxed); }

 private:
  std::uint32_t count_;
  std::uint64_t taken_ = 0;  // of all time
  std::atomic<std::uint64_t> freed_{0};
};

// A queue pair's; the receives' are not used with a shared receive queue.
struct QpSlots {
  QpSlots(std::uint32_t of_sends, std::uint32_t of_receives)
      : sends(of_sends), receives(of_receives) {}
  Slots sends;
  Slots receives;
};

}  // namespace cepheus::verbs
