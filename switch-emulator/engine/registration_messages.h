// MRP datagrams that a switch sends: a REGISTER split by port, control passed down the tree,
// REJECT.
#pragma once

#include <span>

#include "switch-emulator/engine/registration.h"

namespace cepheus::fabric {

enum class Reach : std::uint8_t { kAll, kSwitches };

// To each port the members behind it; `ports` names the output port of every member. The leader
// gets nothing back.
void split_register(Call& call, const MrpRequest& request, const Group& group,
                    std::span<const PortId> ports);

// The same request, without members, to every path but the leader's; to a host under its own
// address.
void pass_on(Call& call, const MrpRequest& request, std::span<const Path> paths, PathNo leader,
             Reach reach);

// The same request as it is to every switch but the one it came from: each takes what concerns its
// own hosts.
void pass_down(Call& call, const MrpRequest& request, const Group& group);

// UNREGISTER in the name of a leader that is gone, to those behind this switch.
void pass_on_aged(Call& call, const Leader& leader, const Group& group, wire::MrpReject why);

// UNREGISTER in the leader's name to one host that is no member any more.
void tell_evicted(Call& call, const MrpRequest& request, PortId port,
                  const wire::MrpMember& member);

// From the switch to the leader: the members that are out.
void confirm_eviction(Call& call, const MrpRequest& request, const wire::MrpMessage& evicted);

// From the switch to the leader: hosts at this switch. The message's header names the group.
void send_report(Call& call, const Leader& leader, const Group& group,
                 const wire::MrpMessage& message);

// From the switch to a leader whose REGISTER it can't read, in the leader's own version.
void send_refusal(Call& call, const wire::UdpDatagram& asked, const wire::MrpRefusal& refusal);

// From the switch to the leader: no, and why; `member` says about whom, if its address is set.
void send_reject(Call& call, const MrpRequest& request, wire::MrpReject reason,
                 const wire::MrpMember& member);

}  // namespace cepheus::fabric
