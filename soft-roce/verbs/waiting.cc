// How a program waits that polls: two cores run the switch and every rank, so spinning is somebody
// else's time.
//
// A fruitless poll costs little, and offers its core now and then. If the offer is taken for long,
// others have real work: then the program sleeps on the port instead, for moments, and a packet
// wakes it. A scheduler lets a process that was woken run sooner than one that gave way.
#include <poll.h>
#include <sched.h>

#include "soft-roce/verbs/live_nic.h"

namespace cepheus::verbs {
namespace {

// Fruitless polls of one thread before it offers its core, and before it sleeps, which costs it and
// its waker more: an answer that is under way should be here by then.
constexpr unsigned kPollsPerYield = 16;
constexpr unsigned kPollsPerNap = 64;
// Fruitless polls between two looks whether the fabric is still there, which costs a system call.
constexpr unsigned kPollsPerCheck = 4096;
// A core given away for longer than this went to somebody who computes.
constexpr Duration kLongYield = std::chrono::microseconds(500);
// Naps before the next yield asks whether the cores are still wanted.
constexpr unsigned kNapsPerYield = 100;
// Bounds what a program that has other things to poll can miss; shorter than the thread's patience
// (nic_thread.cc).
constexpr timespec kNap{0, 200'000};

struct Waiting {
  unsigned fruitless = 0;
  unsigned naps_left = 0;  // > 0: the cores are wanted
};
thread_local Waiting waiting;

clockid_t own_cpu_clock() {
  clockid_t clock{};
  ::pthread_getcpuclockid(::pthread_self(), &clock);
  return clock;
}

}  // namespace

void LiveNic::poll() {
  bool moved = false;
  if (std::unique_lock lock(mutex_, std::try_to_lock); lock.owns_lock()) {
    static thread_local const clockid_t clock = own_cpu_clock();
    const Instant now = monotonic_now();
    poller_clock_.store(clock, std::memory_order_relaxed);
    last_poll_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    moved = progress(now);
    if (moved) count_taken(false);
    if (!moved && waiting.fruitless % kPollsPerCheck == kPollsPerCheck - 1) check_fabric();
  }
  if (moved) {
    waiting.fruitless = 0;
  } else if (++waiting.fruitless % (waiting.naps_left > 0 ? kPollsPerNap : kPollsPerYield) == 0) {
    rest();
  }
}

void LiveNic::rest() {
  if (waiting.naps_left > 0) {
    --waiting.naps_left;
    if (nap()) return;
  }
  const Instant before = monotonic_now();
  ::sched_yield();
  if (monotonic_now() - before > kLongYield) waiting.naps_left = kNapsPerYield;
}

bool LiveNic::nap() {
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || !is_up() || napping_) return false;
    if (thread_on_port_) {
      // One sleeper a port: the thread sees that the program polls, and leaves it.
      if (!program_watches_memory()) kick();
      return false;
    }
    // Work in hand is done first, and something that has just arrived is not slept over.
    if (engine_.wants_to_transmit() || !port_->arm()) return true;
    napping_ = true;
  }
  pollfd want{port_->wait_fd(), POLLIN, 0};
  ::ppoll(&want, 1, &kNap, nullptr);
  const std::scoped_lock lock(mutex_);
  napping_ = false;
  if (!is_abandoned()) port_->disarm();
  return true;
}

}  // namespace cepheus::verbs
