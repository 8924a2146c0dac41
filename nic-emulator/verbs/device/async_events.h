// Asynchronous events of one open device, behind a descriptor that programs may poll (IBTA 11.6.3).
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "nic-emulator/verbs/device/inner_mutex.h"
#include "nic-emulator/verbs/device/readiness.h"

namespace cepheus::verbs {

// One object's events: a queue pair's, a port's. The lock of AsyncEvents guards its fields.
class AsyncSource {
  friend class AsyncEvents;
  std::uint32_t handed_out_ = 0;
  std::uint32_t waiting_ = 0;  // types, as bits
};

// Thread-safe. Its lock is taken last.
//
// Of each type of event, one of each object waits: a second one has no new information before the
// program has fetched the first. So a program that never fetches events costs bounded memory, and
// no event is lost.
class AsyncEvents {
 public:
  static wire::Result<std::unique_ptr<AsyncEvents>> create();
  int fd() const { return ready_.fd(); }

  void post(const ibv_async_event& event, AsyncSource& source);
  // The next event. Waits, unless the program made the descriptor non-blocking; false with errno
  // EAGAIN or EINTR. The wait is a cancellation point.
  bool take(ibv_async_event& event);
  // Drops waiting events about one object, before it is destroyed; returns how many were handed
  // out.
  std::uint32_t withdraw(AsyncSource& source);
  // In the child of a fork(): unlocks, and drops all events.
  void on_forked();

 private:
  struct Waiting {
    ibv_async_event event;
    AsyncSource* source;
  };
  explicit AsyncEvents(Readiness ready) : ready_(std::move(ready)) {}

  Readiness ready_;
  InnerMutex mutex_;
  std::deque<Waiting> waiting_;
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
