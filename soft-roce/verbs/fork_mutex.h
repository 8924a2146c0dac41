// A mutex that is taken around fork(), so that the child finds what it guards whole.
//
// A signal handler may call fork(), and it may have interrupted the very thread that holds the
// mutex, for instance a debugger's start behind SIGSEGV. That thread must not wait for itself: then
// the process is copied as it is, in the middle of something.
#pragma once

#include <sched.h>

#include <atomic>
#include <mutex>

namespace cepheus::verbs {

class ForkMutex {
 public:
  void lock() {
    const Taking taking(this);
    mutex_.lock();
    holder_.store(self(), std::memory_order_relaxed);
  }
  bool try_lock() {
    const Taking taking(this);
    if (!mutex_.try_lock()) return false;
    holder_.store(self(), std::memory_order_relaxed);
    return true;
  }
  void unlock() {
    const Taking taking(this);
    holder_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock();
  }

  // False: the calling thread was interrupted while it held the mutex; nothing is to be unlocked.
  bool lock_for_fork() {
    if (holder_.load(std::memory_order_relaxed) == self()) return false;
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

 private:
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

  static constexpr int kLong = 1000;  // looks

  static const void* self() { return &taking_; }  // each thread has its own

  // In the memory that every thread has from its start: a handler must not allocate.
  [[gnu::tls_model("initial-exec")]] static inline thread_local const ForkMutex* taking_ = nullptr;

  std::mutex mutex_;
  std::atomic<const void*> holder_{nullptr};
};

}  // namespace cepheus::verbs
