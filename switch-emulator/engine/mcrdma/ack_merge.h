// Merging of what the receivers of a sender group answer into the one stream that its sender's NIC
// understands, at the sender's switch (docs/protocol.md, "Sender groups"; MC-RDMA IV-C, IV-D).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/cnp_policy.h"
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
  // acknowledged all before of; none, if that is not known.
  void set_receivers(std::span<const wire::MrpMember> receivers, std::optional<Psn> start);

  // Data from the sender goes by.
  void on_data(Psn psn);
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
  std::optional<Psn> sent() const { return sent_; }
  // Of a table of hardware: what is kept of one receiver, and of the group.
  static constexpr std::size_t kReceiverBytes = 4 + 3;   // IPv4, PSN
  static constexpr std::size_t kGroupBytes = 7 + 4 + 4;  // key, alias, asked

 private:
  Receiver* find(Ipv4 host);
  const Receiver* slowest() const;  // null: one is unknown

  const Ipv4 alias_;
  const PortId port_;
  std::vector<Receiver> receivers_;
  std::optional<Psn> asked_;  // what the sender has been asked for, and has not sent again
  std::optional<Psn> sent_;   // the furthest that has gone by
  std::unique_ptr<CnpPolicy> cnps_;
};

}  // namespace cepheus::fabric
