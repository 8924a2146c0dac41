// The members behind a switch that a registration has named, and which of them have confirmed its
// current step: what makes few CONFIRMs of many (docs/protocol.md, "Registration").
//
//   the leader asks for it -> owed -> it confirms -> ready -> the switch has told the leader
//
// What was told may be lost: the leader asks again, and a member that has confirmed is ready at
// once.
#pragma once

#include <span>
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
    bool confirmed = false;
    bool owed = false;       // the leader waits for it
    bool host_sync = false;  // as it confirmed (wire::MrpHeader::kHostSync)

    wire::MrpMember name() const { return {host, qpn}; }
  };

  // New members; of those that are known nothing changes.
  void add(std::span<const Member> members);
  void remove(Ipv4 host);
  // Null if it is no member behind this switch, or has another queue pair.
  const Member* find(const wire::MrpMember& named) const;
  const Member* find(Ipv4 host) const;
  const Member* find_behind(PortId port) const;  // the first there, null if there is none
  std::size_t size() const { return members_.size(); }
  std::size_t count_behind(PortId port) const {
    return port.value() < behind_.size() ? behind_[port.value()] : 0;
  }

  // Confirmations count for one step at a time: those of the one before are forgotten.
  void begin(wire::MrpType step);
  wire::MrpType step() const { return step_; }
  // The leader waits for a member, which must be one, or for all.
  void ask(const Member& member);
  void ask_all();
  // False if no such member is behind `port`.
  bool confirm(const wire::MrpMember& named, PortId port, bool host_sync);

  std::size_t awaited() const { return owed_ - ready_; }  // owed, but not confirmed
  std::size_t ready() const { return ready_; }            // owed and confirmed
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
  }
  // The switch looks again at a time that is set.
  bool is_timed = false;

  void check_consistent() const;

 private:
  void note(PortId port, bool comes);
  std::size_t place_of(Ipv4 host, std::size_t among) const;
  void ask(std::size_t place);

  std::vector<Member> members_;        // sorted by host
  std::vector<std::uint32_t> behind_;  // members by port
  wire::MrpType step_ = wire::MrpType::kRegister;
  std::size_t owed_ = 0, ready_ = 0;
};

}  // namespace cepheus::fabric
