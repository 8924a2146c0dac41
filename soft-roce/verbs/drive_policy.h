// Who drives a NIC: the program, by polling, or the NIC's thread.
//
// A program that polls does it best: nothing has to be woken. It is left alone for a moment after
// each poll, unless it is about to sleep and only the thread could wake it (a completion queue is
// armed), or looks at its memory between its polls for what peers write there: then only the thread
// can bring that. No call says so; it shows in the writes without a completion that a polling
// program leaves to the thread. One of those weighs as much as several that polls take: after each,
// such a program polls for the completion of its own answer. Pure: time comes in as an argument.
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

  void polled(wire::Instant now) { last_poll_.store(now, kRelaxed); }
  // Writes of peers that no completion tells of: how many the program took by a poll, or the thread.
  void program_took(std::uint64_t writes) { add(-static_cast<std::int64_t>(writes)); }
  void thread_took(std::uint64_t writes) {
    add(kThreadTook * static_cast<std::int64_t>(std::min(writes, kMostEvidence)));
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
  static constexpr std::int64_t kThreadTook = 8;
  static constexpr std::int64_t kWatches = 16;
  static constexpr std::uint64_t kMostEvidence = 64;

  void add(std::int64_t more) {
    const std::int64_t sum = evidence_.load(kRelaxed) + more;
    evidence_.store(std::clamp<std::int64_t>(sum, 0, kMostEvidence), kRelaxed);
  }

  std::atomic<wire::Instant> last_poll_{wire::Instant::min()};  // min: never
  std::atomic<std::int64_t> evidence_{0};
};

}  // namespace cepheus::verbs
