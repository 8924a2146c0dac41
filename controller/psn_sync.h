// When a member moves its queue pair's PSNs on, in groups whose switches do not rebase (the papers'
// PSN synchronisation; docs/protocol.md, "Changing the source").
//
// The group's PSNs go on over all turns. A member's send PSN is behind once it has received, its
// receive PSN once it has sent. A queue pair that goes through RESET takes new ones: the last
// source rqPSN := its sqPSN as soon as all it sent is acknowledged, and a new source sqPSN := its
// rqPSN before it sends. Before RESET the queue pair is stopped (ERR), and what was posted is
// awaited as flushed: the device has then done with every packet it had begun. The kernel's driver
// loses a queue pair for good that is reset in the middle of one. No I/O: the group asks what is
// due and says what was done.
//
// A source that never pauses would leave its receive PSN behind without limit. PSNs are a circle of
// 2^24, and a queue pair takes a PSN that is 2^23 or more beyond the expected one for an old
// duplicate: it would acknowledge the next source's packets and deliver none of them. So a member
// sends at most kMostSent packets between two steps, however its program behaves.
#pragma once

#include <cstdint>

namespace cepheus::mrp {

class PsnSync {
 public:
  enum class Step { kNone, kStop, kReceivePsn, kSendPsn };

  // Bound: the receive PSN is at most 2^22 behind the group's. The next source has at most 2^22
  // packets beyond what all have (fabric::Turn::kMostUnderWay), so its last one is at most
  // 2^22 + 2^22 - 1 beyond that receive PSN, which is less than 2^23.
  static constexpr std::uint64_t kMostSent = 1 << 22;

  void enable() { enabled_ = true; }
  bool is_enabled() const { return enabled_; }

  void sent(std::uint64_t packets) { sent_ += packets; }
  void received() { send_is_behind_ = true; }
  // Both PSNs are the same as far as completions tell. Before it sends a member has to read them: a
  // WRITE without immediate, and a message of a source that died on the way, move the receive PSN on
  // and complete nothing. received() if they differ.
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
