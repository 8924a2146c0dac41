// The numbering of hosts' PSNs from turn to turn (docs/protocol.md, "Changing the source"): all
// parts of the protocol that depend on it, behind one interface. Fixed when a group is registered.
#pragma once

#include "switch-emulator/engine/claim.h"

namespace cepheus::fabric {

class Numbering {
 public:
  virtual ~Numbering() = default;
  virtual const char* name() const = 0;  // as in the topology file
  // Flags of REGISTER that announce it to the members (wire::MrpHeader).
  virtual std::uint16_t register_flags() const = 0;
  // Whether a source's T increases by the packets of its turn.
  virtual bool counts_turns() const = 0;
  // Finds the turn of a host's packet; admits a newcomer if the gate is open.
  virtual Claim claim(Call& call, OneSource& group, const GroupPacket& packet) const = 0;
  // The first PSN that the host on `path` can have outstanding, in its numbering. None: unknown, or
  // not `psn`.
  virtual std::optional<Psn> first_outstanding(const OneSource& group, PathNo path,
                                               Psn psn) const = 0;
  // Whether a sequence NAK for `psn`, the group's, comes from the last turn's source, which accepts
  // nothing before it has set its PSNs.
  virtual bool is_of_last_source(const Call& call, const OneSource& group, PathNo path,
                                 Psn psn) const = 0;
};

// "rebase": a host counts its own packets only, and the switch knows the difference (T).
class Rebasing final : public Numbering {
 public:
  const char* name() const override { return "rebase"; }
  std::uint16_t register_flags() const override { return 0; }
  bool counts_turns() const override { return true; }
  Claim claim(Call& call, OneSource& group, const GroupPacket& packet) const override;
  std::optional<Psn> first_outstanding(const OneSource& group, PathNo path, Psn psn) const override;
  bool is_of_last_source(const Call&, const OneSource&, PathNo, Psn) const override {
    return false;
  }
};

// "host-sync": hosts set their PSNs to the group's between turns (paper III-E).
class HostSync final : public Numbering {
 public:
  const char* name() const override { return "host-sync"; }
  std::uint16_t register_flags() const override { return wire::MrpHeader::kHostSync; }
  bool counts_turns() const override { return false; }
  Claim claim(Call& call, OneSource& group, const GroupPacket& packet) const override;
  std::optional<Psn> first_outstanding(const OneSource& group, PathNo path, Psn psn) const override;
  bool is_of_last_source(const Call& call, const OneSource& group, PathNo path,
                         Psn psn) const override;
};

// As host-sync: PSNs are the same on both sides of the port, and turns have no names.
Claim claim_synchronised(Call& call, OneSource& group, const GroupPacket& packet);

}  // namespace cepheus::fabric
