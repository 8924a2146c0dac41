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
#include "switch-emulator/engine/group/cnp_selector.h"
#include "switch-emulator/engine/group/evidence.h"
#include "switch-emulator/engine/group/naks.h"
#include "switch-emulator/engine/group/round_trip.h"
#include "wire/extension_headers.h"
#include "wire/types.h"

namespace cepheus::fabric {

// The packets that the sender has been requested to repeat. It goes back: one NAK brings all packets
// from its own on, to all receivers. So a NAK need not wait, as NAKs of a turn do (naks.h), and one
// for these packets passes only if their repeat has lost it.
class GoBack {
 public:
  // The sender is requested to go back to `first`; it has sent packets up to `sent`.
  void begin(Psn first, Psn sent) {
    first_ = first;
    to_ = after(sent, first) ? sent : first;
    resent_.reset();
  }
  void on_data(Psn psn) {
    if (covers(psn) && !has_resent(psn)) resent_ = psn;
  }
  void end() {
    first_.reset();
    resent_.reset();
  }
  bool is_on() const { return first_.has_value(); }
  bool covers(Psn psn) const { return first_ && !before(psn, *first_) && !after(psn, to_); }
  bool has_resent(Psn psn) const { return resent_ && !after(psn, *resent_); }
  bool begins_at(Psn psn) const { return first_ == psn; }
  Psn to() const { return to_; }

 private:
  std::optional<Psn> first_, resent_;  // the last one of them that was repeated
  Psn to_;
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
    // It lacks the packet after `acked`, and no repeat will bring it: the NAK to pass.
    std::optional<Nak> lacks;
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

  AckMerge(Ipv4 alias, PortId sender_port, const Rules& rules, Duration cnp_window);

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
  Taken take(Instant now, Ipv4 host, Psn psn, const wire::Aeth& aeth, Answer& answer);
  // When feedback is overdue. Never: no receiver lacks a packet, no round trip is known, its packet
  // was requested Requests::kMost times, or the rule is off.
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
  // Key, alias, acknowledged, requested, sent, last, owed, sample, silence, requests, round trip.
  static constexpr std::size_t kGroupBytes =
      7 + 4 + 3 + 10 + 3 + 3 + 3 + 7 + 4 + 4 + LongestTrip::kBytes;

 private:
  // A packet whose round trips are measured.
  struct Sample {
    Psn psn;
    Instant at;
    bool is_repeat;
  };
  // Data or feedback of the group passes: the silence begins anew. A time after now: nothing is due
  // until then.
  void note_packet(Instant at) { last_packet_ = std::max(last_packet_, at); }
  void sample(Instant now, Psn psn, bool ack_request);
  bool note_acked(Instant now, Receiver& from, Psn cumulative, std::uint32_t msn);
  void forget_what_all_have(Psn acked);
  bool take_nak(Receiver& from, const Nak& nak, Psn first);
  bool comes(const Receiver& receiver, bool is_rnr) const;
  std::optional<Nak> due(Psn first) const;
  void add_round_trip(Instant now, const Receiver& from, Psn acked);
  Taken pass(const Answer& answer);
  Taken request(Instant now, const Nak& nak, const Receiver& least, Answer& answer);
  Receiver* find(Ipv4 host);
  const Receiver* slowest() const;  // null: some PSN is unknown

  const Ipv4 alias_;
  const PortId port_;
  // Rules, as they were when the group was made.
  const bool acks_minimum_, naks_minimum_, awaits_unknown_, is_once_, requests_again_;
  std::vector<Receiver> receivers_;
  std::optional<Psn> acknowledged_;  // the sender's newest acknowledgement, if it has arrived
  GoBack go_back_;                   // of the last request
  std::optional<Psn> sent_;  // the highest PSN that has passed; before the first packet, start - 1
  // The switch has seen the group from its start. Otherwise, after a restart of the switch, the
  // sender may have sent more than `sent_`.
  bool has_seen_all_ = false;
  std::optional<Psn> last_;  // the last PSN that has passed
  std::optional<Psn> owed_;  // ... with AckReq, since the sender last went back
  std::unique_ptr<CnpSelector> cnps_;
  LongestTrip trip_;  // from a packet until all have it; or a repeat, until one that lacked it has
  Instant last_packet_{};
  Requests requests_;
  std::optional<Sample> sample_;
};

}  // namespace cepheus::fabric
