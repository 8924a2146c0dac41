// A mutex that is taken around fork(), so that the child finds what it guards whole.
//
// A signal handler may call fork(), and it may have interrupted the very thread that holds the
// mutex, for instance a debugger's start behind SIGSEGV. That thread must not wait for itself, nor
// for a thread that waits for it: then the process is copied as it is, in the middle of something.
#pragma once

#include <sched.h>

#include <atomic>
#include <mutex>
#include <new>

#include "soft-roce/verbs/inner_mutex.h"

namespace cepheus::verbs {

class ForkMutex {
 public:
  // `is_inner`: it counts among InnerLocks.
  explicit ForkMutex(bool is_inner) : is_inner_(is_inner) {}

  void lock() {
    if (is_inner_) InnerLocks::enter();
    const Taking taking(this);
    mutex_.lock();
    holder_.store(self(), std::memory_order_relaxed);
  }
  bool try_lock() {
    if (is_inner_) InnerLocks::enter();
    if (take()) return true;
    if (is_inner_) InnerLocks::leave();
    return false;
  }
  void unlock() {
    {
      const Taking taking(this);
      holder_.store(nullptr, std::memory_order_relaxed);
      mutex_.unlock();
    }
    if (is_inner_) InnerLocks::leave();
  }

  // `held`: InnerLocks that the calling thread had when fork() was called. False: a signal handler
  // forks, and the thread that it interrupted has the mutex, or has others, and this one stayed
  // taken. Nothing is to be unlocked.
  bool lock_for_fork(int held) {
    if (holder_.load(std::memory_order_relaxed) == self()) return false;
    const bool is_at_this_only = taking_ == this && held == (is_inner_ ? 1 : 0);
    if (held > 0 && !is_at_this_only) return try_for_short();
    // Interrupted while it waited for another thread, or between taking the mutex and noting it: then
    // nobody is noted for long.
    for (int unnoted = 0; taking_ == this && unnoted < kLong;) {
      if (try_lock()) return true;
      if (holder_.load(std::memory_order_relaxed) == nullptr) ++unnoted;
      ::sched_yield();
    }
    if (taking_ == this) return false;
    lock();
    return true;
  }

  // The calling thread has the mutex, or was interrupted while it took it or gave it back.
  bool is_in_use_here() const {
    return holder_.load(std::memory_order_relaxed) == self() || taking_ == this;
  }
  // In the child of a fork, where no other thread is.
  void renew() { new (this) ForkMutex(is_inner_); }

 private:
  bool take() {
    const Taking taking(this);
    if (!mutex_.try_lock()) return false;
    holder_.store(self(), std::memory_order_relaxed);
    return true;
  }
  bool try_for_short() {
    for (int looks = 0; looks < kShort; ++looks) {
      if (try_lock()) return true;
      ::sched_yield();
    }
    return false;
  }

  // Notes which mutex the thread is about to take or give back.
  class Taking {
   public:
    explicit Taking(const ForkMutex* mutex) : before_(taking_) {
      taking_ = mutex;
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~Taking() {
      std::atomic_signal_fence(std::memory_order_seq_cst);
      taking_ = before_;
    }
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;

   private:
    const ForkMutex* const before_;
  };

  static constexpr int kLong = 1000, kShort = 32;  // looks

  static const void* self() { return &taking_; }  // each thread has its own

  // In the memory that every thread has from its start: a handler must not allocate.
  [[gnu::tls_model("initial-exec")]] static inline thread_local const ForkMutex* taking_ = nullptr;

  const bool is_inner_;
  std::mutex mutex_;
  std::atomic<const void*> holder_{nullptr};
};

}  // namespace cepheus::verbs
