// The members behind a switch that a registration has named, and which of them have confirmed its
// current step: what makes few CONFIRMs of many (docs/protocol.md, "Registration").
//
//   the leader asks for it -> owed -> it confirms -> ready -> the switch has told the leader
//
// What was told may be lost: the leader asks again, and a member that has confirmed is ready at
// once.
//
// A member on an own port has an entry for the group's life. A member behind a trunk has one during
// REGISTER only, where a list that comes twice must not count it twice. In later steps the trunk's
// count stands for it, and its name lives from its CONFIRM until the leader is told. So memory goes
// by ports and trunks, not by members (paper III-D).
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "switch-emulator/engine/switch.h"

namespace cepheus::fabric {

class Roster {
 public:
  struct Member {
    Ipv4 host;
    Qpn qpn;
    PortId port;                     // that leads to it
    std::uint16_t control_port = 0;  // wire::MrpMember::control_port
    bool by_trunk = false;           // `port` is one
    bool confirmed = false;
    bool owed = false;       // the leader waits for it
    bool host_sync = false;  // as it confirmed (wire::MrpHeader::kHostSync)

    wire::MrpMember name() const { return {host, qpn}; }
  };

  // New members; of those that are known nothing changes. During REGISTER only.
  void add(std::span<const Member> members);
  // A member is out of the group. The count of a trunk stays: EVICT is repeated, and would take one
  // member off twice.
  void remove(Ipv4 host);
  // Null if it has no entry, or has another queue pair.
  const Member* find(const wire::MrpMember& named) const;
  const Member* find(Ipv4 host) const;
  // A member behind a trunk, for error texts: the first by address, unless it has been removed.
  std::optional<wire::MrpMember> one_behind(PortId trunk) const;
  std::size_t size() const { return members_.size() + nameless_; }
  // Members that were registered by a trunk; 0 for an own port.
  std::size_t count_behind(PortId trunk) const;

  // Confirmations count for one step at a time: those of the one before are forgotten.
  void begin(wire::MrpType step);
  wire::MrpType step() const { return step_; }
  // The leader waits for a member, which must have an entry, for some of those without, or for all.
  void ask(const Member& member);
  void ask_nameless(std::size_t members) { expected_ = std::max(expected_, members); }
  void ask_all();
  // False if no such member is behind `port`. Of members without an entry the trunk's switch knows.
  bool confirm(const wire::MrpMember& named, PortId port, bool host_sync);

  // Owed, but not confirmed. Of members without an entry an estimate, which repeats and evictions
  // leave too large, and doubled CONFIRMs too small.
  std::size_t awaited() const { return owed_ - ready_ + expected_; }
  std::size_t ready() const { return ready_ + heard_.size(); }  // owed and confirmed
  // Passes the ready ones on, who are not owed any more.
  template <typename Take>
  void take_ready(Take&& take) {
    for (std::size_t i = 0; ready_ > 0; ++i) {
      Member& m = members_[i];
      if (!m.owed || !m.confirmed) continue;
      m.owed = false;
      --owed_;
      --ready_;
      take(m);
    }
    const std::vector<Member> heard = std::exchange(heard_, {});
    for (const Member& m : heard) take(m);
  }
  // The switch looks again at a time that is set.
  bool is_timed = false;

  // That it has allocated.
  std::size_t allocated_bytes() const {
    return (members_.capacity() + heard_.capacity()) * sizeof(Member) +
           trunks_.capacity() * sizeof(Trunk);
  }
  void check_consistent() const;

 private:
  struct Trunk {
    PortId port;
    std::uint32_t members = 0;
    Ipv4 host;  // of one of them; unset if that one has been removed
    Qpn qpn;
  };
  void count(const Member& member);
  void forget_names();
  std::size_t place_of(Ipv4 host, std::size_t among) const;
  void ask(std::size_t place);
  void hear(const Member& member);

  std::vector<Member> members_;  // sorted by host
  std::vector<Trunk> trunks_;    // in the order of their first members
  std::vector<Member> heard_;    // without an entry: confirmed, and the leader is not told
  std::size_t nameless_ = 0;     // members without an entry
  std::size_t expected_ = 0;     // ... that still owe a CONFIRM, about
  std::size_t owed_ = 0, ready_ = 0;
  wire::MrpType step_ = wire::MrpType::kRegister;
};

}  // namespace cepheus::fabric
