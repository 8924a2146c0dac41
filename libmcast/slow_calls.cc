#include "libmcast/slow_calls.h"

#include <pthread.h>

#include <csignal>
#include <system_error>

namespace cepheus::mcast {

constexpr auto kIdle = std::chrono::seconds(1);

SlowCalls::~SlowCalls() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool SlowCalls::add(Call call) {
  const std::lock_guard lock(mutex_);
  if (!is_running_) {
    if (thread_.joinable()) thread_.join();  // it has ended by itself, and holds no lock
    sigset_t all, before;
    sigfillset(&all);
    // A NIC in this process notices memory that the program has unmapped by these.
    for (const int signal : {SIGBUS, SIGSEGV}) sigdelset(&all, signal);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { run(); });
      is_running_ = true;
    } catch (const std::system_error&) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!is_running_) return false;
  }
  calls_.push_back(std::move(call));
  changed_.notify_all();
  return true;
}

void SlowCalls::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait_for(lock, kIdle, [this] { return stop_ || !calls_.empty(); });
    if (calls_.empty()) break;
    const Call call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    call();
    lock.lock();
  }
  is_running_ = false;
}

}  // namespace cepheus::mcast
