#include "switch-emulator/ports/epoll_wait.h"

#include <poll.h>

#include <atomic>
#include <cerrno>
#include <chrono>

namespace cepheus::fabric {
namespace {

// epoll_pwait() counts whole milliseconds, and links need less. An epoll descriptor is readable as
// soon as it has an event, so ppoll() waits for it.
int wait_by_ppoll(int epoll, std::span<epoll_event> events, const timespec* limit) {
  pollfd ready{epoll, POLLIN, 0};
  const int found = ::ppoll(&ready, 1, limit, nullptr);
  if (found <= 0) return found;
  return ::epoll_pwait(epoll, events.data(), static_cast<int>(events.size()), 0, nullptr);
}

}  // namespace

int wait_for_events(int epoll, std::span<epoll_event> events, wire::Duration most) {
  static std::atomic<bool> is_refused{false};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec time{static_cast<time_t>(seconds.count()),
                      static_cast<long>((most - seconds).count())};
  const timespec* const limit = most < wire::Duration(0) ? nullptr : &time;
  int found = -1;
  if (!is_refused.load(std::memory_order_relaxed)) {
    found = ::epoll_pwait2(epoll, events.data(), static_cast<int>(events.size()), limit, nullptr);
    // ENOSYS of a kernel; EPERM or another error of a seccomp profile.
    const bool is_news = found < 0 && errno != EINTR && errno != EBADF;
    if (is_news) is_refused.store(true, std::memory_order_relaxed);
  }
  if (is_refused.load(std::memory_order_relaxed)) found = wait_by_ppoll(epoll, events, limit);
  return found < 0 && errno == EINTR ? 0 : found;
}

}  // namespace cepheus::fabric
