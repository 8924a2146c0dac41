// Merging of what the receivers of a sender group answer into the one stream that its sender's NIC
// understands, at the sender's switch (docs/protocol.md, "Sender groups"; MC-RDMA IV-C, IV-D).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/cnp_policy.h"
#include "switch-emulator/engine/evidence.h"
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
  };

  AckMerge(Ipv4 alias, PortId sender_port, net::CnpPolicy cnps, Duration cnp_window);

  Ipv4 alias() const { return alias_; }
  PortId port() const { return port_; }
  // Those who were there before keep what is known of them. `start`: what newcomers have
  // acknowledged all before of; none, if that is not known. The answer to a sender that waited for
  // those who are not there any more, if it did.
  std::optional<Answer> set_receivers(std::span<const wire::MrpMember> receivers,
                                      std::optional<Psn> start);

  // Data from the sender goes by.
  void on_data(Instant now, Psn psn);
  // Feedback from `host`. kPassed: `answer` is to go on.
  Taken take(const Rules& rules, Ipv4 host, Psn psn, const wire::Aeth& aeth, Answer& answer);
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
  static constexpr std::size_t kReceiverBytes = 4 + 3;            // IPv4, PSN
  static constexpr std::size_t kGroupBytes = 7 + 4 + 3 + 10 + 4;  // key, alias, told, asked, held

 private:
  // A NAK or RNR NAK that waits, or has been passed.
  struct Nak {
    Psn psn;
    wire::Aeth aeth;
  };
  Taken take_nak(const Rules& rules, const Nak& nak, const Receiver& least, Answer& answer);
  Taken tell(const Answer& answer);
  bool is_asked(Psn psn) const { return asked_ && !before(psn, *asked_) && !after(psn, asked_to_); }
  bool is_resent(Psn psn) const { return resent_ && !after(psn, *resent_); }
  Taken ask(const Nak& nak, const Receiver& least, Answer& answer);
  Receiver* find(Ipv4 host);
  const Receiver* slowest() const;  // null: one is unknown

  const Ipv4 alias_;
  const PortId port_;
  std::vector<Receiver> receivers_;
  std::optional<Psn> told_;  // what the sender knows all to have, if that has reached it
  // What the sender was asked for last, all from there to `asked_to_`, and how far it has come again.
  std::optional<Psn> asked_, resent_;
  Psn asked_to_;
  std::optional<Nak> held_;  // the first of those for what has come again, and was lost again
  std::optional<Psn> sent_;  // the furthest that has gone by
  std::unique_ptr<CnpPolicy> cnps_;
};

}  // namespace cepheus::fabric
