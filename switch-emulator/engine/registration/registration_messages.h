// MRP datagrams that a switch sends: a REGISTER split by port, requests down the tree, REJECT.
#pragma once

#include <span>
#include <vector>

#include "switch-emulator/engine/registration/registration.h"

namespace cepheus::fabric {

// Members that a request names, by the port that leads to them. A member may have several.
class Split {
 public:
  void add(PortId port, const wire::MrpMember& member);
  bool is_empty() const { return places_.empty(); }
  // Sends the request to each port with the members behind it; to a host as its process knows it.
  // CONNECT and ACTIVATE contain the number of members of `roster` there. `flags`: further flags for
  // members. `mft`: of CONNECT and ACTIVATE, which have the other members' trees.
  void send(Call& call, const MrpRequest& request, const Roster* roster = nullptr,
            std::uint16_t flags = 0, const Mft* mft = nullptr);

 private:
  struct Place {
    PortId port;
    const wire::MrpMember* member;  // all members in the request's list
  };
  std::vector<Place> places_;
};

// The same message to all: without a list, with all other records.
wire::MrpMessage without_members(const wire::MrpMessage& message);
// Sends the same request, without members, on every port; to a host under its own address, to the
// member's process. `mft`: as for Split::send().
void pass_on(Call& call, const MrpRequest& request, std::span<const PortId> ports,
             const Roster& roster, const Mft* mft = nullptr);
void pass_on_to_switches(Call& call, const MrpRequest& request, std::span<const PortId> ports);

// Sends the same request unchanged to the switches on `ports`: each handles its own hosts.
void pass_down(Call& call, const MrpRequest& request, std::span<const PortId> ports);

// UNREGISTER in the name of a leader that has gone, to the nodes behind this switch, or again to the
// switches among them.
void pass_on_aged(Call& call, const AgedGroup& group, std::span<const PortId> ports,
                  const Roster& roster);
void pass_on_aged_again(Call& call, const AgedGroup& group, std::span<const PortId> ports);

// Passes on a message of a member or another switch, by the port towards the leader.
void pass_up(Call& call, const MrpRequest& answer, PortId port, const Leader& leader);

// UNREGISTER in the leader's name to one evicted host.
void send_evicted(Call& call, const MrpRequest& request, PortId port,
                  const wire::MrpMember& member);

// From the switch to the leader: the evicted members.
void confirm_eviction(Call& call, const MrpRequest& request, const wire::MrpMessage& evicted);

// From the switch to its own host: its published regions are in force.
void confirm_publication(Call& call, const wire::UdpDatagram& request,
                         const wire::Publication& publication);

// A message of this switch about the leader's group.
wire::MrpMessage message_of(wire::MrpType type, McstId id, std::uint16_t epoch,
                            const Leader& leader);

// From the switch to the leader: hosts at this switch. The message's header names the group.
void send_report(Call& call, const Leader& leader, const Mft& mft, const wire::MrpMessage& message);

// From the switch to a leader with an unreadable REGISTER, in the leader's own version.
void send_refusal(Call& call, const wire::UdpDatagram& request, const wire::MrpRefusal& refusal);

// From the switch, by the port towards the leader.
void send_to_leader(Call& call, PortId port, const Leader& leader, const wire::MrpMessage& message);

// From the switch to the leader: a refusal with its reason; `member` is the member in question, if
// its address is set.
void send_reject(Call& call, const MrpRequest& request, wire::MrpReject reason,
                 const wire::MrpMember& member);

}  // namespace cepheus::fabric
