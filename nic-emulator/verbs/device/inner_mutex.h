// The locks that are taken last: a NIC's, and those behind it in the order of locks (live_nic.h).
//
// Each thread counts those that it has or is about to take. A signal handler may interrupt a thread
// with such a lock and call fork(), and fork's handlers take other locks. A thread with a count
// above 0 waits for none of them, because their holders may wait for it.
#pragma once

#include <atomic>
#include <mutex>

namespace cepheus::verbs {

class InnerLocks {
 public:
  static int held() { return held_; }
  static void enter() {
    ++held_;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  static void leave() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    --held_;
  }

 private:
  // In the memory that every thread has from its start: a handler must not allocate.
  [[gnu::tls_model("initial-exec")]] static inline thread_local int held_ = 0;
};

class InnerMutex {
 public:
  void lock() {
    InnerLocks::enter();
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    InnerLocks::leave();
  }

 private:
  std::mutex mutex_;
};

}  // namespace cepheus::verbs
