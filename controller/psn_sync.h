// The time at which a member changes its queue pair's PSNs, in groups without rebasing by switches
// (the papers' PSN synchronisation; docs/protocol.md, "Changing the source").
//
// The group's PSNs continue over all turns. A member's send PSN is behind once it has received, and
// its receive PSN once it has sent. A queue pair that goes through RESET gets new PSNs. The last
// source sets rqPSN := its sqPSN as soon as all members have acknowledged its data. A new source
// sets sqPSN := its rqPSN before it sends. Before RESET the queue pair goes to ERR, and its posted
// work has to complete as flushed. Then the device has finished every packet. The kernel's driver
// loses a queue pair for good if RESET comes in the middle of a packet. No I/O: the group requests
// the next step and reports when it is done.
//
// A source that never pauses would leave its receive PSN behind without limit. PSNs are a circle of
// 2^24. A queue pair takes a PSN that is 2^23 or more beyond the expected one for an old duplicate:
// it would acknowledge the next source's packets and deliver none of them. So a member sends at
// most kMostSent packets between two steps, for any program.
#pragma once

#include <cstdint>

namespace cepheus::mrp {

class PsnSync {
 public:
  enum class Step { kNone, kStop, kReceivePsn, kSendPsn };

  // Bound: the receive PSN is at most 2^22 behind the group's. The next source has at most 2^22
  // packets that are not acknowledged by all (fabric::Turn::kMostUnderWay). So its last packet is
  // at most 2^22 + 2^22 - 1 beyond that receive PSN, which is less than 2^23.
  static constexpr std::uint64_t kMostSent = 1 << 22;

  void enable() { enabled_ = true; }
  bool is_enabled() const { return enabled_; }

  void sent(std::uint64_t packets) { sent_ += packets; }
  void received() { send_is_behind_ = true; }
  // True if completions show no difference between both PSNs. A WRITE without immediate moves the
  // receive PSN without a completion, and so does a dead source's message. So a member reads both
  // before it sends, and calls received() if they differ.
  bool has_to_look() const {
    return enabled_ && phase_ == Phase::kRunning && !send_is_behind_ && sent_ == 0;
  }
  // False: a send of that many packets has to wait for the step that want_to_send() makes due. One
  // of more than kMostSent packets would wait for ever, and has to be refused.
  bool may_send(std::uint64_t packets) const {
    if (!enabled_) return true;
    return phase_ == Phase::kRunning && !send_is_behind_ && sent_ + packets <= kMostSent;
  }
  void want_to_send() { wanted_ = true; }

  // `outstanding`: sends not yet acknowledged by all; RESET would lose them.
  Step due(unsigned outstanding) const {
    if (!enabled_ || outstanding > 0 || phase_ == Phase::kStopped) return Step::kNone;
    const Step step = sent_ > 0                    ? Step::kReceivePsn
                      : wanted_ && send_is_behind_ ? Step::kSendPsn
                                                   : Step::kNone;
    return step != Step::kNone && phase_ == Phase::kRunning ? Step::kStop : step;
  }
  void stopped() { phase_ = Phase::kStopped; }
  bool is_stopped() const { return phase_ != Phase::kRunning; }
  void drained() { phase_ = Phase::kDrained; }
  // Both PSNs are the same afterwards.
  void done() {
    send_is_behind_ = wanted_ = false;
    sent_ = 0;
    phase_ = Phase::kRunning;
  }

 private:
  enum class Phase { kRunning, kStopped, kDrained };

  Phase phase_ = Phase::kRunning;
  bool enabled_ = false;
  bool send_is_behind_ = false;
  bool wanted_ = false;
  std::uint64_t sent_ = 0;  // packets that the receive PSN is behind
};

}  // namespace cepheus::mrp
