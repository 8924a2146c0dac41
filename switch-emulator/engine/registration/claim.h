// A packet's claim: which turn it belongs to. And the numbering of hosts' PSNs, which decides the
// claims of hosts by one of two methods (docs/protocol.md, "Changing the source"). They share a
// file because each method of numbering is a method of claiming.
//
// A turn is one source's run of messages, named by (source IP, base). The kind of its path
// determines how data of a new turn is recognised:
//   a host under rebasing    its next send PSN is S+T, whatever arrives first
//   a switch                 its packets are tagged with the turn's name
//   otherwise                the next PSN after `sent`, from another path (host PSN
//                            synchronisation)
#pragma once

#include "switch-emulator/engine/group/bridging.h"

namespace cepheus::fabric {

struct Call;

enum class Claim : std::uint8_t {
  kCurrent,  // belongs to the current turn, which may have begun with it
  kHandled,  // held by the gate, answered or dropped, and counted
};

// Finds the turn of `packet`; admits a newcomer if the gate is open.
Claim claim_turn(Call& call, Group& group, const GroupPacket& packet);

// Drops the frames that the gate holds, which arrived by `port`.
void empty_gate(Call& call, Group& group, PortId port);

// The numbering of hosts' PSNs from turn to turn: all parts of the protocol that depend on it,
// behind one interface. Fixed when a group is registered.
class Numbering {
 public:
  virtual ~Numbering() = default;
  virtual const char* name() const = 0;  // as in the topology file
  // Flags of REGISTER that announce it to the members (wire::MrpHeader).
  virtual std::uint16_t register_flags() const = 0;
  // Whether a source's T increases by the packets of its turn.
  virtual bool counts_turns() const = 0;
  // The MSN of an answer to the source at `path`, of which all have that many messages of its turn.
  virtual std::uint32_t msn(const Group& group, PathNo path, std::uint32_t messages) const = 0;
  // Finds the turn of the packet of a host that is not the source; admits it if the gate is open.
  virtual Claim claim(Call& call, Group& group, const GroupPacket& packet) const = 0;
  // The first PSN that the host on `path` can have outstanding, in its numbering. None: unknown, or
  // not `psn`.
  virtual std::optional<Psn> first_outstanding(const Group& group, PathNo path, Psn psn) const = 0;
  // Whether a sequence NAK for `psn`, the group's, shows that the last turn's source has not set its
  // PSNs yet. Precondition: `path` is that source's.
  virtual bool is_of_last_source(const Group& group, PathNo path, Psn psn) const = 0;
};

// "rebase": a host counts its own packets only, and the switch knows the difference (T).
class Rebasing final : public Numbering {
 public:
  // `knows_first`: by T; else a newcomer's first packet to arrive is taken for its first.
  explicit Rebasing(bool knows_first) : knows_first_(knows_first) {}

  const char* name() const override { return "rebase"; }
  std::uint16_t register_flags() const override { return 0; }
  bool counts_turns() const override { return true; }
  std::uint32_t msn(const Group& group, PathNo path, std::uint32_t messages) const override;
  Claim claim(Call& call, Group& group, const GroupPacket& packet) const override;
  std::optional<Psn> first_outstanding(const Group& group, PathNo path, Psn psn) const override;
  bool is_of_last_source(const Group&, PathNo, Psn) const override { return false; }

 private:
  const bool knows_first_;
};

// "host-sync": hosts set their PSNs to the group's between turns (paper III-E). PSNs are the same on
// both sides of a port.
class HostSync final : public Numbering {
 public:
  // `waits`: a newcomer waits until the last source has set its PSNs.
  explicit HostSync(bool waits) : waits_(waits) {}

  const char* name() const override { return "host-sync"; }
  std::uint16_t register_flags() const override { return wire::MrpHeader::kHostSync; }
  bool counts_turns() const override { return false; }
  std::uint32_t msn(const Group&, PathNo, std::uint32_t) const override { return kAheadOfAll; }
  Claim claim(Call& call, Group& group, const GroupPacket& packet) const override;
  std::optional<Psn> first_outstanding(const Group& group, PathNo path, Psn psn) const override;
  bool is_of_last_source(const Group& group, PathNo path, Psn psn) const override;

 private:
  // A NIC counts its messages from RESET on, which no switch sees. It has sent at most 2^22 packets
  // since (mrp::PsnSync::kMostSent): so this MSN is ahead of its count, and the PSN alone limits what
  // completes.
  static constexpr std::uint32_t kAheadOfAll = (1 << 23) - 1;
  const bool waits_;
};

}  // namespace cepheus::fabric
