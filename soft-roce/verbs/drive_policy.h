// Who drives a NIC: the program, by polling, or the NIC's thread.
//
// A program that polls does it best: nothing has to be woken. It is left alone for a moment after
// each poll, unless it is about to sleep and only the thread could wake it (a completion queue is
// armed), or looks at its memory between its polls for what peers write there: then only the thread
// can bring that. No call says so; it shows in what a polling program leaves to the thread. One
// packet that the thread finds weighs as much as several that polls take: after each, such a
// program polls for the completion of its own answer. A program that was off its core meanwhile has
// left nothing to anybody. Pure: time comes in as an argument; under the NIC's lock.
#pragma once

#include <algorithm>

#include "wire/types.h"

namespace cepheus::verbs {

class DrivePolicy {
 public:
  // A program that has polled within this time will poll again.
  static constexpr wire::Duration kPollGrace = std::chrono::milliseconds(1);

  // --- The program.
  void polled(wire::Instant now) {
    last_poll_ = now;
    has_polled_ = true;
  }
  void took_by_poll() { evidence_ = std::max(evidence_ - kProgramTook, 0); }

  // --- The thread.
  // The CPU time of the thread that polled last, looked at `now`: counts from the look before.
  void look_at_program(wire::Instant now, wire::Duration cpu) {
    has_run_ = kRuns * (cpu - cpu_) >= now - looked_;
    cpu_ = cpu;
    looked_ = now;
  }
  void took_by_thread() {
    if (has_run_) evidence_ = std::min(evidence_ + kThreadTook, kMostEvidence);
  }
  bool watches_memory() const { return evidence_ >= kWatches; }
  // `armed`: a completion queue is; `naps`: the program sleeps on the port, and polls again then.
  bool leaves_to_program(wire::Instant now, bool armed, bool naps) const {
    if (naps) return true;
    if (armed || watches_memory()) return false;
    return has_polled_ && now - last_poll_ < kPollGrace;
  }

 private:
  static constexpr int kThreadTook = 8;
  static constexpr int kProgramTook = 1;
  static constexpr int kWatches = 16;
  static constexpr int kMostEvidence = 64;
  static constexpr int kRuns = 3;  // on a core for at least a third of the time

  wire::Instant last_poll_{};
  bool has_polled_ = false;
  int evidence_ = 0;
  wire::Duration cpu_{0};
  wire::Instant looked_{};
  bool has_run_ = false;
};

// How the NIC's thread goes on after it has moved packets. Where cores are wanted by programs that
// compute, each wake-up costs one of them a switch of context: packets that come within kGather
// share one. Otherwise it offers its core to the program or the peer.
class ThreadPace {
 public:
  static constexpr wire::Duration kGather = std::chrono::microseconds(200);

  bool gathers(wire::Instant now) const { return now < computing_until_; }
  // A yield began and ended then.
  void yielded(wire::Instant began, wire::Instant ended) {
    if (ended - began > kSlowYield) computing_until_ = ended + kComputingLasts;
  }

 private:
  // A core that was given away for so long went to a program that computes, not to one that polls;
  // others may.
  static constexpr wire::Duration kSlowYield = std::chrono::milliseconds(1);
  static constexpr wire::Duration kComputingLasts = std::chrono::milliseconds(20);

  wire::Instant computing_until_{};
};

}  // namespace cepheus::verbs
