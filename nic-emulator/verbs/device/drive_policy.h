// Chooses the driver of a NIC: the program, by polling, or the NIC's thread.
//
// Polls of the program are best: no thread has to be woken. So the thread leaves the NIC to the
// program for a moment after each poll, except in two cases. A completion queue is armed: the
// program is about to sleep, and only the thread could wake it. Or the program reads its memory
// between polls for a peer's writes, which only the thread can take in. No call reveals the second
// case. It shows in writes without a completion that a polling program leaves to the thread. They
// count as much as several polls that take packets: after each, such a program polls for the
// completion of its own answer. Pure: time comes in as an argument. Under the NIC's lock, except
// for the thread's checks.
#pragma once

#include <algorithm>
#include <atomic>

#include "wire/types.h"

namespace cepheus::verbs {

class DrivePolicy {
 public:
  // A program that has polled within this time will poll again.
  static constexpr wire::Duration kPollGrace = std::chrono::milliseconds(1);
  // Sleep of the thread before it checks again whether the program polls, after `streak` of polling
  // without a break. A program that stops polling waits this fraction of that time for its thread.
  static constexpr wire::Duration until_next_check(wire::Duration streak) {
    return std::clamp(streak / kParts, kPollGrace, kMostGrace);
  }

  void polled(wire::Instant now) { last_poll_.store(now, kRelaxed); }
  // A poll took packets in.
  void program_took() { add(-1); }
  // The thread took packets in, among them writes of peers without a completion.
  void thread_took_writes() { add(kThreadTook); }

  // Without the lock, these two:
  bool watches_memory() const { return evidence_.load(kRelaxed) >= kWatches; }
  // `armed`: a completion queue is; `program_sleeps`: on the port, and it polls when it
  // wakes.
  bool leaves_to_program(wire::Instant now, bool armed, bool program_sleeps) const {
    if (program_sleeps) return true;
    if (armed || watches_memory()) return false;
    const wire::Instant last = last_poll_.load(kRelaxed);
    return last != wire::Instant::min() && now - last < kPollGrace;
  }

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;
  static constexpr int kParts = 8;
  static constexpr wire::Duration kMostGrace = std::chrono::milliseconds(4);
  static constexpr int kThreadTook = 8;
  static constexpr int kWatches = 16;
  static constexpr int kMostEvidence = 64;

  void add(int more) {
    evidence_.store(std::clamp(evidence_.load(kRelaxed) + more, 0, kMostEvidence), kRelaxed);
  }

  std::atomic<wire::Instant> last_poll_{wire::Instant::min()};  // min: never
  std::atomic<int> evidence_{0};
};

}  // namespace cepheus::verbs
