// The NAKs of a turn: which of them reach the source, and when (docs/protocol.md, "Feedback"). A
// switch's own requests for overdue feedback are NAKs, too.
//
//            a path's NAK(e)           all have e-1             e is repeated
//      none ----------------> held --------------------> sent ---------------> repeated
//       ^                      |                          |                        |
//       +--- e is repeated ----+       all have e         |                        |
//       +----------------------+--------------------------+------------------------+
//
// After RNR(e) the same receiver also sends NAK(e), which would cut the wait short: it is not held
// while RNR(e) is sent. After NAK(e) other receivers send it, which lost it too. NAKs from before the
// repeat arrive up to the difference of their delays after it, and each would spend one of the
// source's retries: none is held after it was sent or repeated. A receiver sends one NAK(e) for a
// gap, so a second one hardly ever means that the repeat was lost: then feedback is overdue.
//
// All PSNs are the group's. `min`: all have acknowledged up to it. Bound of all comparisons: NAKs
// are for packets in (min, sent], which are within 2^22 (Turn::kMostUnderWay), and a NAK is deleted
// when `min` passes it, or the turn ends.
#pragma once

#include <array>
#include <optional>

#include "net/rules.h"
#include "wire/extension_headers.h"
#include "wire/types.h"

namespace cepheus::fabric {

// A sequence or RNR NAK: all before `psn` has arrived.
struct Nak {
  wire::Psn psn;
  bool rnr = false;
  std::uint8_t timer = 0;

  // A switch's own request: as if a receiver were not ready, with the shortest wait. It spends none
  // of the source's retries, and NICs that ignore a second NAK for a packet accept it. The source
  // repeats one packet, and the answer to that reveals other losses.
  static Nak request(wire::Psn psn) { return {psn, true, 1}; }
  // `aeth` is a sequence or RNR NAK.
  static Nak from(wire::Psn psn, const wire::Aeth& aeth) {
    return {psn, aeth.kind == wire::AckKind::kRnrNak, aeth.value};
  }
  wire::Aeth aeth(std::uint32_t msn = 0) const {
    if (rnr) return {wire::AckKind::kRnrNak, timer, msn};
    return wire::Aeth::nak(wire::NakCode::kSequenceError, msn);
  }
  // How long it makes the source wait.
  wire::Duration pause() const { return rnr ? wire::rnr_timer_duration(timer) : wire::Duration(); }
  // Another one for the same packet: an RNR NAK wins, with the longest timer.
  void join(const Nak& other) {
    if (!other.rnr) return;
    timer = rnr ? wire::longer_rnr_timer(timer, other.timer) : other.timer;
    rnr = true;
  }
};

// How often the packet that a source must repeat next has been requested.
class Requests {
 public:
  // The source's own time-out repairs the rest.
  static constexpr int kMost = 4;
  int count(wire::Psn psn) const { return psn == psn_ ? count_ : 0; }
  void add(wire::Psn psn) {
    count_ = count(psn) + 1;
    psn_ = psn;
  }
  void reset() { count_ = 0; }

 private:
  wire::Psn psn_;
  int count_ = 0;
};

class Naks {
 public:
  explicit Naks(const net::Rules& rules = {})
      : sequence_waits_(rules.nak_ordering),
        rnr_waits_(rules.rnr_ordering),
        is_once_(rules.nak_once),
        is_rechecked_(rules.recheck_held_nak),
        needs_ack_after_rnr_(rules.ack_after_rnr),
        most_held_(rules.several_naks ? kMostHeld : 1) {}
  // Another turn, or a simulated jump.
  void reset();

  // A receiver's NAK, or a request. Keeps the smallest few: while one waits, another receiver may
  // lose a later packet, and sends one NAK for it.
  void hold(const Nak& nak);
  // The smallest, if it may go to the source now, and then it has. The others are deleted, because
  // the source's repeat includes their packets. `from_slowest`: the path for which others waited
  // has answered.
  std::optional<Nak> take_due(wire::Instant now, wire::Psn min, bool from_slowest);
  // The source has got NAK(psn) before its turn began.
  void on_sent_before(wire::Psn psn) { last_sequence_ = psn; }
  // The switch requests `psn`, by a NAK that hold() gets next.
  void on_request(wire::Psn psn) {
    requests_.add(psn);
    requested_ = psn;
  }

  // The source sends `psn` (again). If that is the repeat for which the last NAK asked, what it
  // shows of the round trip to the source: exactly, if the packet was requested once (Karn's
  // algorithm), or at most, if twice. Nothing after a receiver's pause: NICs keep long ones roughly.
  struct Repeat {
    std::optional<wire::Duration> trip;
    bool is_exact = false;
    bool needs_ack = false;  // the source has waited, and may have to wait again
  };
  std::optional<Repeat> on_data(wire::Instant now, wire::Psn psn);
  // All have everything up to `min`. True: a request was unnecessary, because the answer came before
  // the repeat.
  bool on_min(wire::Psn min);

  // The packet of the smallest held one.
  std::optional<wire::Psn> held() const {
    return held_ > 0 ? std::optional(waiting_[0].psn) : std::nullopt;
  }
  // The source has been sent a NAK for `psn`, and has not repeated it.
  bool is_sent(wire::Psn psn) const { return sent_ && sent_->psn == psn; }
  int requests(wire::Psn psn) const { return requests_.count(psn); }
  // Until when the source waits before it repeats the packet of the last NAK.
  std::optional<wire::Instant> repeat_begins() const {
    return sent_ ? std::optional(sent_->begins) : std::nullopt;
  }
  // How long it has to wait from the last NAK on.
  wire::Duration pause() const { return sent_ ? sent_->begins - sent_->last : wire::Duration(); }

 private:
  static constexpr std::uint8_t kMostHeld = 4;

  // A NAK to the source, until it repeats the packet or all have it.
  struct Sent {
    wire::Psn psn;
    int naks;
    wire::Instant first, last;  // of its NAKs
    wire::Duration pause;
    bool is_paused;        // by a receiver
    wire::Instant begins;  // end of the longest of its waits
  };
  bool waits(const Nak& nak) const { return nak.rnr ? rnr_waits_ : sequence_waits_; }
  bool knows(wire::Psn psn) const { return is_sent(psn) || (is_once_ && last_sequence_ == psn); }
  void drop(std::size_t at);

  // Rules, as they were when the group was made.
  bool sequence_waits_, rnr_waits_, is_once_, is_rechecked_, needs_ack_after_rnr_;
  std::uint8_t most_held_;
  std::uint8_t held_ = 0;               // number of held NAKs
  std::array<Nak, kMostHeld> waiting_;  // by PSN
  // PSN of the last sequence NAK to the source, until all have it.
  std::optional<wire::Psn> last_sequence_;
  std::optional<Sent> sent_;
  std::optional<wire::Psn> requested_;  // by the switch itself, until it is repeated
  Requests requests_;

 public:
  // In a hardware table: the held ones, rules and numbers, and the PSNs of the last ones to the
  // source.
  static constexpr std::size_t kTableBytes =
      kMostHeld * sizeof(Nak) + 8 + 2 * sizeof(std::optional<wire::Psn>);
};

}  // namespace cepheus::fabric
