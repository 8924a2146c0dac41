// Merging of what the receivers of a sender group answer into the one stream that its sender's NIC
// understands, at the sender's switch (docs/protocol.md, "Sender groups"; MC-RDMA IV-C, IV-D).
//
// Bound of all comparisons: a sender has fewer than 2^23 packets outstanding (IBTA 9.7.2), so what its
// receivers have acknowledged, what it was asked for and what it sends lie that near. A request is
// forgotten when all have what it asks for.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/cnp_policy.h"
#include "switch-emulator/engine/evidence.h"
#include "switch-emulator/engine/mcrdma/repeat_timer.h"
#include "wire/extension_headers.h"

namespace cepheus::fabric {

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
  std::unique_ptr<CnpPolicy> cnps_;
  RepeatTimer timer_;
  std::optional<Sample> sample_;
};

}  // namespace cepheus::fabric
