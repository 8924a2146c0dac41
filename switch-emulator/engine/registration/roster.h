// The members behind a switch that a registration has named, and their confirmations of its current
// step: merges many CONFIRMs into few (docs/protocol.md, "Registration").
//
//   the leader requests it -> owed -> it confirms -> ready -> the switch has sent CONFIRM
//
// That CONFIRM may be lost: the leader repeats its request, and a member that has confirmed is
// ready at once.
//
// A member on an own port has an entry for the group's life. A member behind a trunk has one until
// ACTIVATE, so that a repeated list does not count it twice. In later steps only the trunk's count
// remains, and its name is kept from its CONFIRM until the switch's. So memory depends on
// ports and trunks, not on members (paper III-D).
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
    PortId port;                     // leads to it
    std::uint16_t control_port = 0;  // wire::MrpMember::control_port
    bool by_trunk = false;           // `port` is a trunk
    bool confirmed = false;
    bool owed = false;       // the leader waits for it
    bool host_sync = false;  // as in its CONFIRM (wire::MrpHeader::kHostSync)

    wire::MrpMember name() const { return {host, qpn}; }
  };

  // Adds new members, and ignores known ones. During REGISTER only.
  void add(std::span<const Member> members);
  // A member is out of the group. The count of a trunk stays: a repeated EVICT would subtract the
  // member twice.
  void remove(Ipv4 host);
  // Null if it has no entry, or has another queue pair.
  const Member* find(const wire::MrpMember& named) const;
  const Member* find(Ipv4 host) const;
  // What the ways behind `port` can take: of a trunk by the last message of its switch; of own hosts
  // together. A path MTU only falls.
  void set_path(PortId port, const wire::MrpPath& path);
  // The least of all of them.
  wire::MrpPath path() const;
  // The own port whose host has the least path MTU of own hosts; none if no host has sent one.
  PortId least_host() const { return least_host_; }
  std::uint16_t hosts_mtu() const { return hosts_path_.mtu; }
  // A member behind a trunk, for error texts: the first by address, unless it has been removed.
  std::optional<wire::MrpMember> one_behind(PortId trunk) const;
  std::size_t size() const { return members_.size() + nameless_; }
  // Members that were registered over a trunk; 0 for an own port.
  std::size_t count_behind(PortId trunk) const;

  // Begins a step: confirmations of the last one are deleted.
  void begin(wire::MrpType step);
  wire::MrpType step() const { return step_; }
  // Members behind trunks have entries, too.
  bool has_all_names() const {
    return step_ == wire::MrpType::kRegister || step_ == wire::MrpType::kConnect;
  }
  // The leader waits for a member with an entry, for some without, or for all.
  void expect(const Member& member);
  void expect_nameless(std::size_t members) { expected_ = std::max(expected_, members); }
  void expect_all();
  // False if no such member is behind `port`. For members without an entry the trunk's switch
  // checks it.
  bool confirm(const wire::MrpMember& named, PortId port, bool host_sync);
  // Some member behind the trunk has: so its switch has the leader's request. Once names are gone.
  bool has_confirmed(PortId trunk) const;

  // Owed, but not confirmed. An estimate for members without an entry: repeats and evictions make
  // it too large, duplicated CONFIRMs too small.
  std::size_t awaited() const { return owed_ - ready_ + expected_; }
  std::size_t ready() const { return ready_ + unsent_.size(); }  // owed and confirmed
  // Passes up to `most` of the ready ones to `take`; they are no longer owed.
  template <typename Take>
  void take_ready(std::size_t most, Take&& take) {
    for (std::size_t i = 0; ready_ > 0 && most > 0; ++i) {
      Member& m = members_[i];
      if (!m.owed || !m.confirmed) continue;
      m.owed = false;
      --owed_;
      --ready_;
      --most;
      take(m);
    }
    const auto end = unsent_.begin() + static_cast<std::ptrdiff_t>(std::min(most, unsent_.size()));
    std::for_each(unsent_.begin(), end, take);
    unsent_.erase(unsent_.begin(), end);
    if (unsent_.empty()) unsent_ = std::vector<Member>();
  }
  // The switch has set a time to check again.
  bool is_timed = false;

  // Allocated memory.
  std::size_t allocated_bytes() const {
    return (members_.capacity() + unsent_.capacity()) * sizeof(Member) +
           trunks_.capacity() * sizeof(Trunk);
  }
  void check_consistent() const;

 private:
  struct Trunk {
    PortId port;
    bool has_confirmed = false;  // has_confirmed()
    std::uint32_t members = 0;
    Ipv4 host;  // of one of them; unset if that one has been removed
    Qpn qpn;
    wire::MrpPath path = {};
  };
  void count(const Member& member);
  void forget_names();
  std::size_t place_of(Ipv4 host, std::size_t among) const;
  void expect(std::size_t place);
  void add_unsent(const Member& member);

  std::vector<Member> members_;  // sorted by host
  std::vector<Trunk> trunks_;    // in the order of their first members
  wire::MrpPath hosts_path_;     // of members on own ports
  PortId least_host_;            // it has that path MTU
  std::vector<Member> unsent_;   // without an entry: confirmed, but not yet passed on to the leader
  std::size_t nameless_ = 0;     // members without an entry
  std::size_t expected_ = 0;     // ... that still owe a CONFIRM (an estimate)
  std::size_t owed_ = 0, ready_ = 0;
  wire::MrpType step_ = wire::MrpType::kRegister;
};

}  // namespace cepheus::fabric
