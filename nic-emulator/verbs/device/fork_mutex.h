// A mutex that is locked around fork(), so that a child finds its data consistent if it can.
//
// A signal handler may call fork(), and may have interrupted the very thread that holds the mutex;
// a handler of SIGSEGV that starts a debugger does so. That thread must not wait for itself, nor
// for a thread that waits for it. Then the process is copied in the middle of a change. The child
// has no device, so it uses none of that data.
#pragma once

#include <sched.h>

#include <atomic>
#include <new>

#include "nic-emulator/verbs/device/inner_mutex.h"
#include "wire/clock.h"

namespace cepheus::verbs {

class ForkMutex {
 public:
  // `is_inner`: it counts among InnerLocks.
  explicit ForkMutex(bool is_inner) : is_inner_(is_inner) {}

  void lock() {
    if (is_inner_) InnerLocks::enter();
    for (int holder = 0; !holder_.compare_exchange_strong(holder, self()); holder = 0) {
      holder_.wait(holder);
    }
  }
  bool try_lock() {
    if (is_inner_) InnerLocks::enter();
    int holder = 0;
    if (holder_.compare_exchange_strong(holder, self())) return true;
    if (is_inner_) InnerLocks::leave();
    return false;
  }
  void unlock() {
    holder_.store(0);
    holder_.notify_one();
    if (is_inner_) InnerLocks::leave();
  }

  // `held`: InnerLocks of the calling thread when it called fork(). False: a signal handler forks,
  // and the interrupted thread has the mutex, or has or waits for another while this one stayed
  // locked. Then nothing is to be unlocked, and the child has no device all the same.
  bool lock_for_fork(int held) {
    if (is_in_use_here()) return false;
    if (held > 0) return try_for_short();
    lock();
    return true;
  }

  // The calling thread has the mutex.
  bool is_in_use_here() const { return holder_.load() == self(); }
  // In the child of a fork, where no other thread is.
  void renew() { new (this) ForkMutex(is_inner_); }

 private:
  bool try_for_short() {
    const wire::Instant until = wire::monotonic_now() + kShort;
    while (!try_lock()) {
      if (wire::monotonic_now() > until) return false;
      ::sched_yield();
    }
    return true;
  }

  // A holder may be off its core for some 10 ms.
  static constexpr wire::Duration kShort = std::chrono::milliseconds(50);

  // Each thread's own number, which it keeps in the child of a fork.
  static int self() {
    if (self_ == 0) self_ = numbers_.fetch_add(1) + 1;
    return self_;
  }

  // In the memory that every thread has from its start: a handler must not allocate.
  [[gnu::tls_model("initial-exec")]] static inline thread_local int self_ = 0;
  static inline std::atomic<int> numbers_{0};

  const bool is_inner_;
  // The lock itself. Locking notes the holder in the same step, so a handler always finds the
  // holder. 0: unlocked.
  std::atomic<int> holder_{0};
};

}  // namespace cepheus::verbs
