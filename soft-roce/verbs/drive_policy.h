// Who drives a NIC: the program, by polling, or the NIC's thread.
//
// A program that polls does it best: nothing has to be woken. It is left alone for a moment after
// each poll, unless it is about to sleep and only the thread could wake it (a completion queue is
// armed), or looks at its memory between its polls for what peers write there: then only the thread
// can bring that. No call says so; it shows in what a polling program leaves to the thread. One
// packet that the thread finds weighs as much as several that polls take: after each, such a
// program polls for the completion of its own answer. A program that was off its core meanwhile has
// left nothing to anybody. Pure: time comes in as an argument. Under the NIC's lock, but for what the
// thread asks first.
#pragma once

#include <algorithm>
#include <atomic>

#include "wire/types.h"

namespace cepheus::verbs {

class DrivePolicy {
 public:
  // A program that has polled within this time will poll again.
  static constexpr wire::Duration kPollGrace = std::chrono::milliseconds(1);

  // --- The program.
  void polled(wire::Instant now) { last_poll_.store(now, kRelaxed); }
  void took_by_poll() {
    evidence_.store(std::max(evidence_.load(kRelaxed) - kProgramTook, 0), kRelaxed);
  }

  // --- The thread.
  // The CPU time of the thread that polled last, looked at `now`: counts from the look before.
  void look_at_program(wire::Instant now, wire::Duration cpu) {
    has_run_ = kRuns * (cpu - cpu_) >= now - looked_;
    cpu_ = cpu;
    looked_ = now;
  }
  void took_by_thread() {
    if (!has_run_) return;
    evidence_.store(std::min(evidence_.load(kRelaxed) + kThreadTook, kMostEvidence), kRelaxed);
  }
  // Without the lock, these two:
  bool watches_memory() const { return evidence_.load(kRelaxed) >= kWatches; }
  // `armed`: a completion queue is; `naps`: the program sleeps on the port, and polls again then.
  bool leaves_to_program(wire::Instant now, bool armed, bool naps) const {
    if (naps) return true;
    if (armed || watches_memory()) return false;
    const wire::Instant last = last_poll_.load(kRelaxed);
    return last != wire::Instant::min() && now - last < kPollGrace;
  }

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;
  static constexpr int kThreadTook = 8;
  static constexpr int kProgramTook = 1;
  static constexpr int kWatches = 16;
  static constexpr int kMostEvidence = 64;
  static constexpr int kRuns = 3;  // on a core for at least a third of the time

  std::atomic<wire::Instant> last_poll_{wire::Instant::min()};  // min: never
  std::atomic<int> evidence_{0};
  wire::Duration cpu_{0};
  wire::Instant looked_{};
  bool has_run_ = false;
};

}  // namespace cepheus::verbs
