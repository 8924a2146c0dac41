#include "libmcast/keep_alive.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>

#include "wire/clock.h"

namespace cepheus::mcast {
namespace {

// Also bounds how late a deadline is noticed that was set while the thread slept.
constexpr wire::Duration kLongestSleep = std::chrono::seconds(30);

}  // namespace

void KeepAlive::start() {
  if (is_running()) return;
  stop_ = false;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void KeepAlive::stop() {
  if (!is_running()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  thread_.join();
}

void KeepAlive::run() {
  for (;;) {
    const wire::Instant next = work_();
    const wire::Duration rest =
        std::clamp(next - wire::monotonic_now(), wire::Duration(0), kLongestSleep);
    std::unique_lock lock(mutex_);
    if (stopping_.wait_for(lock, rest, [this] { return stop_; })) return;
  }
}

}  // namespace cepheus::mcast
