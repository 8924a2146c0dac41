// Merging of what the receivers of a sender group answer into the one stream that its sender's NIC
// understands, at the sender's switch (docs/protocol.md, "Sender groups"; MC-RDMA IV-C, IV-D).
//
// Bound of all comparisons: a sender has fewer than 2^23 packets outstanding (IBTA 9.7.2), so what its
// receivers have acknowledged, what it was asked for and what it sends lie that near. A request is
// forgotten when all have what it asks for.
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

// When the feedback of a sender group is overdue: a retransmission timer, kept by the sender's switch,
// whose round trips are far shorter than what NICs wait (docs/protocol.md, "Sender groups").
//
// After three of the longest round trips of late; after more, while few are known. (RFC 6298's mean and
// deviation are too short: a group that seldom sends meets queues that none of its few packets has met,
// and a repeat that nobody needed makes these longer.)
class RepeatTimer {
 public:
  // Data or feedback of the group goes by: it is not quiet. Later than now: so long nothing is due.
  void on_packet(wire::Instant at) { last_ = std::max(last_, at); }
  // From a packet to the word that all have got it, or of a repeat, that one has who lacked it.
  void add_round_trip(wire::Duration d) {
    longest_ = std::max(d, longest_ - (longest_ - d) / kEnough);
    known_ = std::min(known_ + 1, kEnough);
  }
  // When to ask again for `first`, if all stays quiet. Never, before a round trip is known, and once
  // the sender was asked for it kMost times: the rest is its own timer's.
  wire::Instant deadline(wire::Psn first) const {
    const int asked = asked_for(first);
    if (known_ == 0 || asked == kMost) return wire::kNever;
    return last_ + (2 * longest_ + kEnough * longest_ / known_) * (1 << asked);
  }
  bool has_asked(wire::Psn first) const { return asked_for(first) > 0; }
  void on_asked(wire::Instant now, wire::Psn first) {
    times_ = asked_for(first) + 1;
    first_ = first;
    last_ = now;
  }
  // Of a table of hardware: round trip, how many are known, last packet, what was asked for, how often.
  static constexpr std::size_t kBytes = 3 + 1 + 4 + 3 + 1;

 private:
  static constexpr int kMost = 4;
  static constexpr int kEnough = 32;
  int asked_for(wire::Psn first) const { return first == first_ ? times_ : 0; }

  wire::Duration longest_{0};  // it fades, by a kEnough-th with each that is shorter
  int known_ = 0;              // round trips, kEnough at most
  wire::Instant last_{};
  wire::Psn first_;  // what was asked for last, so often
  int times_ = 0;
};

class AckMerge {
 public:
  struct Receiver {
    Ipv4 host;
    Psn acked;                // all before and at it
    std::uint32_t msn = 0;    // as it said with that
    bool is_known = false;    // acked means something
    std::uint32_t heard = 0;  // packets from it, modulo 2^24
    Repeats unanswered;       // of the packet that it lacks
    std::optional<Psn> said;  // it lacked, last; not before all that it has acknowledged since
    // It lacks what follows `acked`, and that is not on its way: the NAK or RNR NAK to pass.
    std::optional<wire::Aeth> lacks;
  };
  // What goes to the sender in the alias's name.
  struct Answer {
    Psn psn;
    wire::Aeth aeth;
  };
  enum class Taken : std::uint8_t {
    kPassed,
    kAbsorbed,
    kWithheld,  // some receiver is unknown
    kStranger,
    kMalformed,  // a reserved syndrome or NAK code
    kUnsent,     // it acknowledges a packet that the sender has never sent
  };

  AckMerge(Ipv4 alias, PortId sender_port, net::CnpPolicy cnps, Duration cnp_window);

  Ipv4 alias() const { return alias_; }
  PortId port() const { return port_; }
  // Those who were there before keep what is known of them. `start`: what newcomers have
  // acknowledged all before of; none, if that is not known. The answer to a sender that waited for
  // those who are not there any more, if it did.
  std::optional<Answer> set_receivers(std::span<const wire::MrpMember> receivers,
                                      std::optional<Psn> start);

  // Data from the sender goes by; does it ask for an acknowledgement?
  void on_data(Instant now, Psn psn, bool ack_request);
  // Feedback from `host`. kPassed: `answer` is to go on.
  Taken take(Instant now, const Rules& rules, Ipv4 host, Psn psn, const wire::Aeth& aeth,
             Answer& answer);
  // When all that goes by has been overdue for long; never, if nobody lacks anything.
  Instant deadline() const;
  // The deadline has passed: what the sender is asked for again.
  Answer ask_again(Instant now);
  // A congestion notification from `host`: is the sender to hear it?
  Taken take_cnp(Instant now, Ipv4 host);
  // What of the sender's own no group does, or nobody allows it: an error that acknowledges
  // nothing. Empty: some receiver is unknown.
  std::optional<Answer> refuse(wire::NakCode code) const;

  std::span<const Receiver> receivers() const { return receivers_; }
  // Has the receiver all that the sender has sent, as far as is known here?
  bool lags(const Receiver& receiver) const {
    return sent_ && (!receiver.is_known || before(receiver.acked, *sent_));
  }
  // ... and does not answer the sender, who asks it again and again: who is not asked has nothing to
  // answer.
  bool is_silent(Instant now, const Receiver& receiver) const {
    return lags(receiver) && receiver.unanswered.go_on(now);
  }
  std::optional<Psn> sent() const { return sent_; }
  // Of a table of hardware: what is kept of one receiver, and of the group.
  static constexpr std::size_t kReceiverBytes = 4 + 3 + 3 + 1;  // IPv4, PSNs, what it lacks
  // Key, alias, told, asked, sent, last, owed, sample, timer.
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
  Taken tell(const Answer& answer);
  bool is_asked(Psn psn) const { return asked_ && !before(psn, *asked_) && !after(psn, asked_to_); }
  bool is_resent(Psn psn) const { return resent_ && !after(psn, *resent_); }
  Taken ask(Instant now, const wire::Aeth& aeth, const Receiver& least, Answer& answer);
  Receiver* find(Ipv4 host);
  const Receiver* slowest() const;  // null: one is unknown

  const Ipv4 alias_;
  const PortId port_;
  std::vector<Receiver> receivers_;
  std::optional<Psn> told_;  // what the sender knows all to have, if that has reached it
  // What the sender was asked for last, all from there to `asked_to_`, and how far it has come again.
  std::optional<Psn> asked_, resent_;
  Psn asked_to_;
  std::optional<Psn> sent_;  // the furthest that has gone by; before the first packet, start - 1
  // The switch has seen the group from its start. Else, after a restart of the switch, the sender may
  // have sent more than `sent_`.
  bool has_seen_all_ = false;
  std::optional<Psn> last_;  // what has gone by last
  std::optional<Psn> owed_;  // ... with AckReq, since the sender last went back
  std::unique_ptr<CnpSelector> cnps_;
  RepeatTimer timer_;
  std::optional<Sample> sample_;
};

}  // namespace cepheus::fabric
