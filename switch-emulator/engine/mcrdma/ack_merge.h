// Merges the answers of a sender group's receivers into the one stream that its sender's NIC
// understands, at the sender's switch (docs/protocol.md, "Sender groups"; MC-RDMA IV-C, IV-D).
//
// Bound of all comparisons: a sender has fewer than 2^23 packets outstanding (IBTA 9.7.2), so its
// packets, the receivers' acknowledgements and the requests to it are that near. A request is
// deleted when all have its packets.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/cnp_selector.h"
#include "switch-emulator/engine/evidence.h"
#include "wire/extension_headers.h"
#include "wire/types.h"

namespace cepheus::fabric {

// When the feedback of a sender group is overdue: a retransmission timer in the sender's switch.
// Its round trips are far shorter than NICs' time-outs (docs/protocol.md, "Sender groups").
//
// After three times the longest recent round trip, and later while few are known. RFC 6298's mean
// and deviation are too short: a group that seldom sends meets queues that none of its few packets
// has met, and an unnecessary repeat makes these longer.
class RepeatTimer {
 public:
  // Data or feedback of the group passes: the silence begins anew. A time after now: nothing is due
  // until then.
  void on_packet(wire::Instant at) { last_ = std::max(last_, at); }
  // From a packet until all have it; for a repeat, until a receiver that lacked it has it.
  void add_round_trip(wire::Duration d) {
    longest_ = std::max(d, longest_ - (longest_ - d) / kEnough);
    known_ = std::min(known_ + 1, kEnough);
  }
  // When to request `first` again, if no packet passes until then. Never before a round trip is
  // known, nor after kMost requests for it: the sender's own timer repairs the rest.
  wire::Instant deadline(wire::Psn first) const {
    const int requests = requests_for(first);
    if (known_ == 0 || requests == kMost) return wire::kNever;
    return last_ + (2 * longest_ + kEnough * longest_ / known_) * (1 << requests);
  }
  bool has_requested(wire::Psn first) const { return requests_for(first) > 0; }
  void on_request(wire::Instant now, wire::Psn first) {
    times_ = requests_for(first) + 1;
    first_ = first;
    last_ = now;
  }
  // In a hardware table: round trip, number of samples, last packet, PSN and number of the last
  // requests.
  static constexpr std::size_t kBytes = 3 + 1 + 4 + 3 + 1;

 private:
  static constexpr int kMost = 4;
  static constexpr int kEnough = 32;
  int requests_for(wire::Psn first) const { return first == first_ ? times_ : 0; }

  wire::Duration longest_{0};  // decays by 1/kEnough of the difference with each shorter one
  int known_ = 0;              // number of round trips, at most kEnough
  wire::Instant last_{};
  wire::Psn first_;  // PSN of the last request, and number of requests for it
  int times_ = 0;
};

class AckMerge {
 public:
  struct Receiver {
    Ipv4 host;
    Psn acked;                    // acknowledges this PSN and all before
    std::uint32_t msn = 0;        // in its last acknowledgement
    bool is_known = false;        // acked is valid
    std::uint32_t packets = 0;    // packets from it, modulo 2^24
    Repeats unanswered;           // of the packet that it lacks
    std::optional<Psn> last_nak;  // PSN of its last NAK, unless acknowledged since
    // It lacks the packet after `acked`, and no repeat will bring it: the NAK or RNR NAK to pass.
    std::optional<wire::Aeth> lacks;
  };
  // Feedback to the sender in the alias's name.
  struct Answer {
    Psn psn;
    wire::Aeth aeth;
  };
  enum class Taken : std::uint8_t {
    kPassed,
    kAbsorbed,
    kWithheld,  // some receiver's PSN is unknown
    kStranger,
    kMalformed,  // a reserved syndrome or NAK code
    kUnsent,     // it acknowledges a packet that the sender has not sent
  };

  AckMerge(Ipv4 alias, PortId sender_port, net::CnpPolicy cnps, Duration cnp_window);

  Ipv4 alias() const { return alias_; }
  PortId port() const { return port_; }
  // Receivers that stay keep their state. `start`: new receivers have acknowledged all before it;
  // none, if unknown. `sees_all`: no packet from `start` on has passed before. Returns an answer to
  // the sender if it waited only for receivers that have gone.
  std::optional<Answer> set_receivers(Instant now, std::span<const wire::MrpMember> receivers,
                                      std::optional<Psn> start, bool sees_all);

  // Data from the sender passes; `ack_request`: its AckReq bit.
  void on_data(Instant now, Psn psn, bool ack_request);
  // Feedback from `host`. kPassed: send `answer` to the sender.
  Taken take(Instant now, const Rules& rules, Ipv4 host, Psn psn, const wire::Aeth& aeth,
             Answer& answer);
  // When feedback is overdue; never, if no receiver lacks a packet.
  Instant deadline() const;
  // The deadline has passed: returns the request to the sender.
  Answer request_again(Instant now);
  // A congestion notification from `host`. kPassed: send it to the sender.
  Taken take_cnp(Instant now, Ipv4 host);
  // For a request of the sender that groups do not support, or that a receiver does not allow: an
  // error that acknowledges nothing. Empty: some receiver's PSN is unknown.
  std::optional<Answer> refuse(wire::NakCode code) const;

  std::span<const Receiver> receivers() const { return receivers_; }
  // Whether the receiver lacks packets that the sender has sent, as far as this switch knows.
  bool lags(const Receiver& receiver) const {
    return sent_ && (!receiver.is_known || before(receiver.acked, *sent_));
  }
  // ... and does not answer repeated packets. A receiver without repeats has nothing to answer.
  bool is_silent(Instant now, const Receiver& receiver) const {
    return lags(receiver) && receiver.unanswered.go_on(now);
  }
  std::optional<Psn> sent() const { return sent_; }
  // In a hardware table: state of one receiver, and of the group.
  static constexpr std::size_t kReceiverBytes = 4 + 3 + 3 + 1;  // IPv4, PSNs, NAK to pass
  // Key, alias, acknowledged, requested, sent, last, owed, sample, timer.
  static constexpr std::size_t kGroupBytes = 7 + 4 + 3 + 10 + 3 + 3 + 3 + 7 + RepeatTimer::kBytes;

 private:
  // A packet whose round trips are measured.
  struct Sample {
    Psn psn;
    Instant at;
    bool is_repeat;
  };
  void sample(Instant now, Psn psn, bool ack_request);
  bool note_acked(Instant now, Receiver& from, Psn cumulative, std::uint32_t msn);
  void forget_what_all_have(Psn acked);
  bool take_nak(const Rules& rules, Receiver& from, const wire::Aeth& aeth, Psn first);
  bool comes(const Receiver& receiver, wire::AckKind kind) const;
  std::optional<wire::Aeth> due(Psn first) const;
  void add_round_trip(Instant now, const Receiver& from, Psn acked);
  Taken pass(const Answer& answer);
  bool is_requested(Psn psn) const {
    return requested_ && !before(psn, *requested_) && !after(psn, requested_to_);
  }
  bool is_resent(Psn psn) const { return resent_ && !after(psn, *resent_); }
  Taken request(Instant now, const wire::Aeth& aeth, const Receiver& least, Answer& answer);
  Receiver* find(Ipv4 host);
  const Receiver* slowest() const;  // null: some PSN is unknown

  const Ipv4 alias_;
  const PortId port_;
  std::vector<Receiver> receivers_;
  std::optional<Psn> acknowledged_;  // the sender's newest acknowledgement, if it has arrived
  // Packets of the last request, from here to `requested_to_`, and the last one of them that was
  // repeated.
  std::optional<Psn> requested_, resent_;
  Psn requested_to_;
  std::optional<Psn> sent_;  // the highest PSN that has passed; before the first packet, start - 1
  // The switch has seen the group from its start. Otherwise, after a restart of the switch, the
  // sender may have sent more than `sent_`.
  bool has_seen_all_ = false;
  std::optional<Psn> last_;  // the last PSN that has passed
  std::optional<Psn> owed_;  // ... with AckReq, since the sender last went back
  std::unique_ptr<CnpSelector> cnps_;
  RepeatTimer timer_;
  std::optional<Sample> sample_;
};

}  // namespace cepheus::fabric
