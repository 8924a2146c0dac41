#include "collectives/group/own_stack.h"

#include <pthread.h>

#include <cstddef>

namespace cepheus::coll {

namespace {

// Some of it is the libraries' thread-local memory: ThreadSanitizer's has half a MiB.
constexpr std::size_t kBytes = std::size_t{4} << 20;

void* run(void* work) {
  (*static_cast<const std::function<void()>*>(work))();
  return nullptr;
}

}  // namespace

// Not std::thread: the program may have made the usual stack small. The caller is not canceled while
// the other thread uses its memory.
void on_own_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_t thread;
  int cancelable = 0;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
  (void)pthread_attr_init(&attributes);
  (void)pthread_attr_setstacksize(&attributes, kBytes);
  auto* const argument = const_cast<std::function<void()>*>(&work);
  bool has_started = false;
  {
    const LeaveSignals leave_signals;
    has_started = pthread_create(&thread, &attributes, run, argument) == 0;
  }
  (void)pthread_attr_destroy(&attributes);
  if (has_started)
    (void)pthread_join(thread, nullptr);
  else
    work();
  (void)pthread_setcancelstate(cancelable, nullptr);
}

}  // namespace cepheus::coll
