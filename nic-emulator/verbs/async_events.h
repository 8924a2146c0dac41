// Asynchronous events of one open device, behind a descriptor that programs may poll (IBTA 11.6.3).
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "nic-emulator/verbs/inner_mutex.h"
#include "nic-emulator/verbs/readiness.h"

namespace cepheus::verbs {

// Thread-safe. Its lock is taken last.
class AsyncEvents {
 public:
  // Beyond it events are dropped and counted: a program that never reads them must not fill the
  // memory.
  static constexpr std::size_t kMost = 1024;

  // `dropped` counts them; it outlives the last post().
  static wire::Result<std::unique_ptr<AsyncEvents>> create(std::atomic<std::uint64_t>& dropped);
  int fd() const { return ready_.fd(); }

  // `handed_out` counts the events about one object that take() has returned; null for the port's.
  void post(const ibv_async_event& event, std::uint32_t* handed_out);
  // The next event. Waits, unless the program made the descriptor non-blocking; false with errno
  // EAGAIN or EINTR. The wait is a cancellation point.
  bool take(ibv_async_event& event);
  // Drops waiting events about one object, before it is destroyed; returns how many were handed
  // out.
  std::uint32_t withdraw(const std::uint32_t& handed_out);
  // In the child of a fork(): unlocks, and drops all events.
  void on_forked();

 private:
  struct Waiting {
    ibv_async_event event;
    std::uint32_t* handed_out;
  };
  AsyncEvents(Readiness ready, std::atomic<std::uint64_t>& dropped)
      : ready_(std::move(ready)), dropped_(dropped) {}

  Readiness ready_;
  InnerMutex mutex_;
  std::deque<Waiting> waiting_;
  std::atomic<std::uint64_t>& dropped_;
};

// In the child of a fork(): unlocks the mutex of ibv_ack_* calls.
inline void renew_after_fork(pthread_mutex_t& mutex) { ::pthread_mutex_init(&mutex, nullptr); }

// Ends an object with events that a program may still hold: waits until `all_acknowledged()`, which
// the acknowledging calls make true under `mutex`, then destroys both.
template <typename Condition>
void await_acknowledgements(pthread_mutex_t& mutex, pthread_cond_t& cond,
                            Condition&& all_acknowledged) {
  ::pthread_mutex_lock(&mutex);
  while (!all_acknowledged()) ::pthread_cond_wait(&cond, &mutex);
  ::pthread_mutex_unlock(&mutex);
  ::pthread_cond_destroy(&cond);
  ::pthread_mutex_destroy(&mutex);
}

}  // namespace cepheus::verbs
