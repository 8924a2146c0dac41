// States: no thread; running; ended by itself and not joined yet. start() during a run only notes
// that the work is wanted again; a thread that has ended is joined and started anew. A rest lasts
// kLongestSleep at most, because a deadline may be set meanwhile. Work that throws is repeated
// after kTryAgain.
#include "libmcast/keep_alive.h"

#include <algorithm>
#include <exception>

#include "wire/clock.h"
#include "wire/leave_signals.h"

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
  const wire::LeaveSignals leave;
  thread_ = std::thread([this] { run(); });
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
