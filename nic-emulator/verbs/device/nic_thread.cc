// The thread of a LiveNic: it drives the engine when the program does not poll.
//
// Driver (live_nic.h) is the thread or the program, each awake or asleep on the port, or nobody.
// Under the lock the thread moves packets. Without packets it arms the port, and sleeps until one
// comes, the engine's deadline, or a kick. While the program polls (DrivePolicy), it only looks
// again after one to four milliseconds. A kick ends its sleeps: a completion queue was armed, the
// program can't sleep because this thread holds the port, packets wait, or the engine's deadline is
// earlier.
//
// Bounds: an exception takes the port down and not the program, and after three the thread ends.
#include <poll.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

#include "nic-emulator/verbs/device/live_nic.h"
#include "nic-emulator/verbs/device/report.h"
#include "switch-emulator/ports/processor.h"
#include "switch-emulator/ports/short_slices.h"
#include "wire/leave_signals.h"

namespace cepheus::verbs {
namespace {

// After this many exceptions the thread ends, and only a program that polls drives the NIC.
constexpr int kMostFailures = 3;

timespec to_timespec(Duration d) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((d - seconds).count())};
}

}  // namespace

wire::Result<void> LiveNic::start_thread() {
  driver_ = Driver::kThread;
  const int error = [this] {
    const wire::LeaveSignals leave;
    return ::pthread_create(&thread_, nullptr, &LiveNic::thread_entry, this);
  }();
  if (error != 0) {
    driver_ = Driver::kNone;
    return wire::unavailable(std::string("can't start the NIC's thread: ") + std::strerror(error) +
                             "; raise the limit of processes");
  }
  ::pthread_setname_np(thread_, "cepheus-nic");
  return {};
}

// An exception, such as a failed allocation, ends the port and not the program.
void* LiveNic::thread_entry(void* self) {
  auto& nic = *static_cast<LiveNic*>(self);
  for (int failures = 0; failures < kMostFailures; ++failures) {
    try {
      nic.thread_loop();
      break;
    } catch (const std::exception& e) {
      nic.fail(e.what());
    }
  }
  return nullptr;
}

// Continues without the fabric: queue pairs end by their own time-outs.
void LiveNic::fail(std::string_view why) {
  const std::scoped_lock lock(mutex_);
  thread_wakes_ = Instant::min();
  pass(Driver::kThreadOnPort, Driver::kThread);
  const bool was_up = up_.exchange(false);
  try {
    print_line("the NIC's thread failed (" + std::string(why) + "): its port is down");
    if (was_up) take_down();
  } catch (const std::exception&) {
    // No memory for the text or for an event. The port is down all the same.
  }
}

void LiveNic::thread_loop() {
  fabric::request_short_slices();
  using WaitFor = fabric::HostPort::WaitFor;
  using fabric::WaitPolicy;
  WaitPolicy policy(Duration(0));
  Instant polled_since = wire::monotonic_now();
  while (driver_ != Driver::kNone) {
    const Instant now = wire::monotonic_now();
    if (drive_.leaves_to_program(now, armed_queues_ > 0, driver_ == Driver::kProgramOnPort)) {
      defer_to_program(DrivePolicy::until_next_check(now - polled_since));
      continue;
    }
    polled_since = now;
    Instant wake = wire::kNever;
    bool on_port = false;
    bool moved = false;
    {
      const std::scoped_lock lock(mutex_);
      pass(Driver::kProgram, Driver::kThread);
      const std::uint64_t writes = engine_.counters()[Counter::kRxSilent];
      moved = progress(now) > 0;
      if (moved) {
        if (engine_.counters()[Counter::kRxSilent] != writes) drive_.thread_took_writes();
        policy.found(now);
      } else {
        check_fabric();
      }
      bool for_batch = false;
      if (!moved) {
        for_batch = policy.found_nothing(now, engine_.bulk() != rnic::Bulk::kNone) ==
                    WaitPolicy::Step::kSleepForBatch;
        // arm() returns false if a packet has arrived in the meantime.
        on_port = is_up() && driver_ != Driver::kProgramOnPort &&
                  port_->arm(for_batch ? WaitFor::kBatch : WaitFor::kFrame);
        moved = is_up() && !on_port;
      }
      if (!moved) {
        wake = engine_.deadline();
        // Packets of a sender that has stopped in the middle hold the fabric's memory.
        if (for_batch) wake = std::min(wake, now + WaitPolicy::kForBatch);
        if (is_up() && engine_.wants_to_transmit()) wake = std::min(wake, now + kRetryTransmit);
        thread_wakes_ = wake;
        if (on_port) pass(Driver::kThread, Driver::kThreadOnPort);
      }
    }
    if (moved) {
      // Lets the program have the lock, or the peer the core; but a program that computes keeps the
      // core for milliseconds.
      if (policy.is_contended(now)) {
        sleep_until(now + WaitPolicy::kGather, false);
      } else {
        fabric::offer_core(policy);
      }
      continue;
    }
    sleep_until(wake, on_port);
    wake_up(on_port);
  }
}

void LiveNic::wake_up(bool on_port) {
  const std::scoped_lock lock(mutex_);
  thread_wakes_ = Instant::min();
  if (on_port) port_->disarm();
  pass(Driver::kThreadOnPort, Driver::kThread);
  clear_kick();
}

void LiveNic::pass(Driver from, Driver to) {
  if (driver_ == from) driver_ = to;
}

void LiveNic::defer_to_program(Duration duration) {
  {
    const std::scoped_lock lock(mutex_);
    pass(Driver::kThread, Driver::kProgram);
  }
  const Driver driver = driver_;
  // A packet wakes a program that sleeps, and its poll wakes other waiters.
  const bool is_left = driver == Driver::kProgram && armed_queues_ == 0;
  if (is_left || driver == Driver::kProgramOnPort) {
    sleep_until(wire::monotonic_now() + duration, false);
  }
  const std::scoped_lock lock(mutex_);
  pass(Driver::kProgram, Driver::kThread);
  clear_kick();
}

void LiveNic::sleep_until(Instant wake, bool on_port) {
  std::array<pollfd, 2> want{{{kick_.fd(), POLLIN, 0}, {-1, POLLIN, 0}}};
  if (on_port) want[1].fd = port_->wait_fd();
  const Duration left =
      wake == wire::kNever ? Duration(0) : std::max(wake - wire::monotonic_now(), Duration(0));
  const timespec timeout = to_timespec(left);
  const int ready =
      ::ppoll(want.data(), want.size(), wake == wire::kNever ? nullptr : &timeout, nullptr);
  // This thread would never sleep again.
  if (ready < 0 && errno != EINTR) {
    throw std::system_error(errno, std::generic_category(), "can't wait for packets");
  }
}

void LiveNic::on_armed() {
  const Driver driver = driver_;
  if (driver != Driver::kProgram && driver != Driver::kProgramOnPort) return;
  const std::scoped_lock lock(mutex_);
  kick();
}

void LiveNic::kick() {
  if (std::exchange(is_kicked_, true)) return;
  kick_.set();
}

void LiveNic::clear_kick() {
  if (std::exchange(is_kicked_, false)) kick_.clear();
}

}  // namespace cepheus::verbs
