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
#pragma once

namespace cepheus::mrp {

class PsnSync {
 public:
  enum class Step { kNone, kStop, kReceivePsn, kSendPsn };

  void enable() { enabled_ = true; }

  void sent() { receive_is_behind_ = true; }
  void received() { send_is_behind_ = true; }
  // False: a send has to wait for the step that want_to_send() makes due.
  bool may_send() const { return !enabled_ || (phase_ == Phase::kRunning && !send_is_behind_); }
  void want_to_send() { wanted_ = true; }

  // `outstanding`: sends not yet acknowledged by all; RESET would lose them.
  Step due(unsigned outstanding) const {
    if (!enabled_ || outstanding > 0 || phase_ == Phase::kStopped) return Step::kNone;
    const Step step = receive_is_behind_           ? Step::kReceivePsn
                      : wanted_ && send_is_behind_ ? Step::kSendPsn
                                                   : Step::kNone;
    return step != Step::kNone && phase_ == Phase::kRunning ? Step::kStop : step;
  }
  void stopped() { phase_ = Phase::kStopped; }
  bool is_stopped() const { return phase_ != Phase::kRunning; }
  void drained() { phase_ = Phase::kDrained; }
  // Both PSNs are the same afterwards.
  void done() {
    send_is_behind_ = receive_is_behind_ = wanted_ = false;
    phase_ = Phase::kRunning;
  }

 private:
  enum class Phase { kRunning, kStopped, kDrained };

  Phase phase_ = Phase::kRunning;
  bool enabled_ = false;
  bool send_is_behind_ = false, receive_is_behind_ = false;
  bool wanted_ = false;
};

}  // namespace cepheus::mrp
