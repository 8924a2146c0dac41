// One thread makes the calls in their order, without the lock. It starts with the first call, waits
// kIdle for another one, and ends. The destructor waits for all calls, queued ones included. If the
// system gives no thread, add() keeps nothing and returns false.
#include "libmcast/slow_calls.h"

#include <system_error>

#include "wire/leave_signals.h"

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
    const wire::LeaveSignals leave;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      return false;
    }
    is_running_ = true;
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
