#include "libmcast/keep_alive.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <exception>

#include "wire/clock.h"

namespace cepheus::mcast {

// Also the longest delay of a deadline that was set while the thread slept.
constexpr wire::Duration kLongestSleep = std::chrono::seconds(30);
// After work that failed, for want of memory for instance.
constexpr wire::Duration kTryAgain = std::chrono::milliseconds(500);

void KeepAlive::start() {
  if (thread_.joinable()) {
    const std::lock_guard lock(mutex_);
    is_wanted_ = true;
    if (!has_ended_) return;
  }
  stop();
  stop_ = has_ended_ = false;
  sigset_t all, before;
  sigfillset(&all);
  // A NIC in this process notices memory that the program has unmapped by these.
  for (const int signal : {SIGBUS, SIGSEGV}) sigdelset(&all, signal);
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
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  thread_.join();
}

void KeepAlive::run() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      is_wanted_ = false;
    }
    wire::Instant next{};
    try {
      next = work_();
    } catch (const std::exception&) {
      next = wire::monotonic_now() + kTryAgain;  // the program must not end by it
    }
    const wire::Duration rest =
        std::clamp(next - wire::monotonic_now(), wire::Duration(0), kLongestSleep);
    std::unique_lock lock(mutex_);
    if (next == wire::kNever) {
      if (is_wanted_ && !stop_) continue;
      has_ended_ = true;
      return;
    }
    if (stopping_.wait_for(lock, rest, [this] { return stop_; })) return;
  }
}

}  // namespace cepheus::mcast
