// Where a program's threads may be cancelled (POSIX.1-2017, XSH 2.9.5).
#pragma once

#include <pthread.h>

namespace cepheus::verbs {

// While one exists, pthread_cancel() does not end the calling thread. With libibverbs a thread ends
// in ibv_get_cq_event or ibv_get_async_event alone. Other calls would end in the middle of a change.
class Uncancelled {
 public:
  Uncancelled() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  // A thread of the asynchronous type ends here.
  ~Uncancelled() noexcept(false) { ::pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace cepheus::verbs
