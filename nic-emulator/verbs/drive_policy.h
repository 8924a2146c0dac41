// Who drives a NIC: the program, by polling, or the NIC's thread.
//
// A program that polls does it best: nothing has to be woken. It is left alone for a moment after
// each poll, unless it is about to sleep and only the thread could wake it (a completion queue is
// armed), or looks at its memory between its polls for what peers write there: then only the thread
// can bring that. No call says so; it shows in writes without a completion that a polling program
// leaves to the thread. They weigh as much as several polls that take packets: after each, such a
// program polls for the completion of its own answer. Pure: time comes in as an argument.
// Under the NIC's lock, but for what the thread asks first.
#pragma once

#include <algorithm>
#include <atomic>

#include "wire/types.h"

namespace cepheus::verbs {

class DrivePolicy {
 public:
  // A program that has polled within this time will poll again.
  static constexpr wire::Duration kPollGrace = std::chrono::milliseconds(1);
  // How long the thread sleeps before it looks again whether the program polls, where it has polled
  // for `streak` without a break. A program that stops waits one part of that for its thread.
  static constexpr wire::Duration until_next_look(wire::Duration streak) {
    return std::clamp(streak / kParts, kPollGrace, kMostGrace);
  }

  void polled(wire::Instant now) { last_poll_.store(now, kRelaxed); }
  // A poll took packets in.
  void program_took() { add(-1); }
  // The thread did, writes of peers among them that no completion tells of.
  void thread_took_writes() { add(kThreadTook); }

  // Without the lock, these two:
  bool watches_memory() const { return evidence_.load(kRelaxed) >= kWatches; }
  // `armed`: a completion queue is; `sleeps`: the program sleeps on the port, and polls again then.
  bool leaves_to_program(wire::Instant now, bool armed, bool sleeps) const {
    if (sleeps) return true;
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
