// create() rings a few times without a waiter and takes the shortest as the cost of a ring here. A
// ring is slow beyond kSlowByUnheard times that, and beyond kLeastSlow in any case. A slow ring by
// the wall clock only raises suspicion; the next one is measured by this thread's own time.
#include "switch-emulator/ports/bell.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>

namespace cepheus::fabric {
namespace {

using std::chrono::nanoseconds;

// Waking a client costs a few microseconds, a thousand waiters about a hundred; on an emulated
// machine ten times as much. So the cost of a ring without waiters determines which rings are slow.
constexpr nanoseconds kLeastSlow = std::chrono::microseconds(100);
constexpr int kSlowByUnheard = 64;
constexpr int kUnheardRings = 8;

nanoseconds read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::chrono::seconds(t.tv_sec) + nanoseconds(t.tv_nsec);
}

}  // namespace

wire::Result<Bell> Bell::create() {
  Bell bell;
  bell.own_end_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bell.client_end_.reset(epoll_create1(EPOLL_CLOEXEC));
  epoll_event rung{EPOLLIN | EPOLLET, {}};
  if (!bell.own_end_.is_open() || !bell.client_end_.is_open() ||
      epoll_ctl(bell.client_end_.get(), EPOLL_CTL_ADD, bell.own_end_.get(), &rung) != 0) {
    return wire::call_failed("can't make a doorbell");
  }
  nanoseconds unheard = nanoseconds::max();
  for (int ring = 0; ring < kUnheardRings; ++ring) {
    const nanoseconds before = read_clock(CLOCK_THREAD_CPUTIME_ID);
    eventfd_write(bell.own_end_.get(), 1);
    unheard = std::min(unheard, read_clock(CLOCK_THREAD_CPUTIME_ID) - before);
  }
  bell.slow_ = std::max(kLeastSlow, kSlowByUnheard * unheard);
  epoll_wait(bell.client_end_.get(), &rung, 1, 0);
  return bell;
}

// Reading the wall clock is cheap, but includes other threads' time on this core. So only after a
// slow ring the next one is measured by this thread's own time.
void Bell::ring() {
  if (!own_end_.is_open()) return;
  if (is_suspect_) {
    const nanoseconds before = read_clock(CLOCK_THREAD_CPUTIME_ID);
    eventfd_write(own_end_.get(), 1);
    is_suspect_ = read_clock(CLOCK_THREAD_CPUTIME_ID) - before > slow_;
    slow_rings_ = is_suspect_ ? slow_rings_ + 1 : 0;
    return;
  }
  const nanoseconds before = read_clock(CLOCK_MONOTONIC);
  eventfd_write(own_end_.get(), 1);
  is_suspect_ = read_clock(CLOCK_MONOTONIC) - before > slow_;
}

}  // namespace cepheus::fabric
