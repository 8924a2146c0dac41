// The thread of a LiveNic: it drives the engine when the program does not poll.
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "soft-roce/verbs/live_nic.h"
#include "switch-emulator/ports/short_slices.h"

namespace cepheus::verbs {
namespace {

// A program that has polled within this time will poll again.
constexpr Duration kPollGrace = std::chrono::milliseconds(1);
// Packets that found neither room nor a payload buffer are tried again after this, if nothing wakes
// us before.
constexpr Duration kRetryTransmit = std::chrono::milliseconds(1);

// Where cores are wanted by programs that compute, each wake-up costs one of them a switch of
// context: packets that come within this time share one.
constexpr Duration kGather = std::chrono::microseconds(200);
// A core that was given away for so long went to one of those, not to one that polls; others may.
constexpr Duration kSlowYield = std::chrono::milliseconds(1);
constexpr Duration kComputingLasts = std::chrono::milliseconds(20);

// What a polling program leaves to the thread tells that it watches its memory instead. One packet
// that the thread finds weighs as much as several that polls take: after each, such a program polls
// for the completion of its own answer. A program that was off its core all the time has left
// nothing to anybody.
constexpr int kThreadTook = 8;
constexpr int kProgramTook = 1;
constexpr int kWatches = 16;  // from here on the thread waits on the port
constexpr int kMostEvidence = 64;

timespec to_timespec(Duration d) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((d - seconds).count())};
}

}  // namespace

wire::Result<void> LiveNic::start_thread() {
  // Signals are the program's: the new thread inherits this mask.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = ::pthread_create(&thread_, nullptr, &LiveNic::thread_entry, this);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    return wire::fail(wire::ErrorCode::kUnavailable, std::string("can't start the NIC's thread: ") +
                                                         std::strerror(error) +
                                                         "; raise the limit of processes");
  }
  thread_runs_ = true;
  ::pthread_setname_np(thread_, "cepheus-nic");
  return {};
}

void* LiveNic::thread_entry(void* self) {
  static_cast<LiveNic*>(self)->thread_loop();
  return nullptr;
}

void LiveNic::thread_loop() {
  fabric::ask_for_short_slices();
  Instant computing_until{};  // programs want the cores
  while (!stopping_.load()) {
    const Instant now = monotonic_now();
    if (program_polls(now)) {
      stay_out_of_the_way();
      continue;
    }
    Instant wake = wire::kNever;
    bool on_port = false;
    bool moved = false;
    {
      const std::scoped_lock lock(mutex_);
      moved = progress(now);
      if (moved && program_has_run(now)) count_taken(true);
      if (!moved) check_fabric();
      if (!moved) {
        // arm() says no if something has arrived meanwhile.
        on_port = is_up() && !napping_ && port_->arm();
        moved = is_up() && !on_port;
      }
      if (!moved) {
        wake = engine_.deadline();
        if (is_up() && engine_.wants_to_transmit()) wake = std::min(wake, now + kRetryTransmit);
        thread_wakes_ = wake;
        thread_on_port_ = on_port;
      }
    }
    if (moved) {
      // Lets the program have the lock, or the peer the core; but a program that computes keeps it
      // for milliseconds.
      if (now < computing_until) {
        sleep_until(now + kGather, false);
      } else {
        const Instant before = monotonic_now();
        ::sched_yield();
        const Instant after = monotonic_now();
        if (after - before > kSlowYield) computing_until = after + kComputingLasts;
      }
      continue;
    }
    sleep_until(wake, on_port);
    const std::scoped_lock lock(mutex_);
    thread_wakes_ = Instant::min();
    if (on_port) port_->disarm();
    thread_on_port_ = false;
    if (thread_kicked_) {
      thread_kicked_ = false;
      kick_.clear();
    }
  }
}

bool LiveNic::program_polls(Instant now) const {
  const Instant last{Duration(last_poll_.load(std::memory_order_relaxed))};
  if (napping_.load()) return true;
  if (program_watches_memory()) return false;
  return armed_queues_.load() == 0 && last != Instant::min() && now - last < kPollGrace;
}

void LiveNic::count_taken(bool by_thread) {
  const int before = left_to_thread_.load(std::memory_order_relaxed);
  const int after = by_thread ? std::min(before + kThreadTook, kMostEvidence)
                              : std::max(before - kProgramTook, 0);
  if (after != before) left_to_thread_.store(after, std::memory_order_relaxed);
}

// Has the thread that polled last been on a core for at least a third of the time since this was
// asked before?
bool LiveNic::program_has_run(Instant now) {
  timespec t{};
  if (::clock_gettime(poller_clock_.load(std::memory_order_relaxed), &t) != 0) return false;
  const Duration cpu = std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
  const bool has_run = 3 * (cpu - program_cpu_) >= now - program_cpu_at_;
  program_cpu_ = cpu;
  program_cpu_at_ = now;
  return has_run;
}

bool LiveNic::program_watches_memory() const {
  return left_to_thread_.load(std::memory_order_relaxed) >= kWatches;
}

void LiveNic::stay_out_of_the_way() {
  thread_defers_.store(true);
  // An arming program sees that flag and kicks, or this looks again and sees the armed queue.
  if (armed_queues_.load() == 0 && !stopping_.load()) {
    program_has_run(monotonic_now());
    sleep_until(monotonic_now() + kPollGrace, false);
  }
  thread_defers_.store(false);
  const std::scoped_lock lock(mutex_);
  if (thread_kicked_) {
    thread_kicked_ = false;
    kick_.clear();
  }
}

void LiveNic::sleep_until(Instant wake, bool on_port) {
  std::array<pollfd, 2> want{{{kick_.fd(), POLLIN, 0}, {-1, POLLIN, 0}}};
  if (on_port) want[1].fd = port_->wait_fd();
  if (wake == wire::kNever) {
    ::poll(want.data(), want.size(), -1);
    return;
  }
  const Duration left = std::max(wake - monotonic_now(), Duration(0));
  const timespec timeout = to_timespec(left);
  ::ppoll(want.data(), want.size(), &timeout, nullptr);
}

void LiveNic::on_armed() {
  if (!thread_defers_.load()) return;
  const std::scoped_lock lock(mutex_);
  kick();
}

void LiveNic::kick() {
  if (thread_kicked_) return;
  thread_kicked_ = true;
  kick_.set();
}

}  // namespace cepheus::verbs
