// Rewriting and making packets: connection bridging (paper III-B), next hops, aggregated feedback.
//
// A group's packets on the wire, by the node at the other end (docs/protocol.md):
//
//                       source IP     destination IP   destination QPN       PSN
//   data from a host    host          McstID           0x1                   host's
//   data, switches      source host   McstID           base of its turn      group's
//   data to a host      McstID        member           member's              host's
//   feedback by a host  host          McstID           0x1                   host's
//   feedback, switches  McstID        source host      base of its turn      group's
//   feedback to a host  McstID        source host      source's              host's
#pragma once

#include "switch-emulator/engine/group/group.h"
#include "wire/roce.h"

namespace cepheus::fabric {

struct Call;

// Fields of a copy's headers that differ from the original's.
struct Rewrite {
  Ipv4 source, destination;
  std::uint8_t hops;  // subtracted from the TTL
  Qpn qpn;
  Psn psn;
  const wire::Reth* reth = nullptr;  // null: unchanged
  const wire::Aeth* aeth = nullptr;  // null: unchanged
};
// Rewrites the headers of a copy that leaves by port `out`, and patches its ICRC.
void rewrite(Call& call, PortId out, Frame& copy, const Frame& original, const Rewrite& r);

// Next hop of an IPv4 frame: new MACs, time to live one less. `ip` is the frame's header.
void route_on(Frame& copy, const Frame& original, const wire::Ipv4Header& ip, const wire::Mac& own,
              const wire::Mac& peer);

// Emits a copy of group data on path `to`, rewritten for the node behind it. `psn` is in the group's
// numbering. A present ICRC is patched, a deferred one stays deferred. Returns whether a copy was
// sent.
bool send_data(Call& call, const Group& group, PathNo to, const GroupPacket& packet, Psn psn);
// The same for a WRITE's first packet to a host, with another address and key.
bool send_addressed(Call& call, const Group& group, PathNo to, const GroupPacket& packet, Psn psn,
                    const wire::Reth& reth);
// The same for an announcement to a host: a WRITE without data, which takes its PSN there.
bool send_without_data(Call& call, const Group& group, PathNo to, const GroupPacket& packet,
                       Psn psn);
// Passes a CNP to the source.
void send_cnp(Call& call, const Group& group, const GroupPacket& packet);
// A CNP from the switch itself to the source: for a mark that an absorbed acknowledgement echoed, or
// by the leader's order. `kind`: its counter.
void make_cnp(Call& call, const Group& group, Counter kind);

// The source port of the switch's own packets for a group. The IBTA wants one for each flow, above
// 0xC000. Its only use is load balancing.
constexpr std::uint16_t flow_port(McstId id) {
  return static_cast<std::uint16_t>(0xC000 | (id.value() & 0x3FFF));
}
// Emits a packet of the switch itself; fills in its Ethernet addresses. Returns whether it was
// sent.
bool send_made(Call& call, Counter kind, PortId port, wire::RoceHeaders headers);

// Emits feedback on `path`; `psn` is in the numbering of that port. The MSN of `answer` counts
// messages of this turn; those of the path's finished turns are added.
void send_feedback(Call& call, const Group& group, PathNo path, const TurnName& turn,
                   const wire::Aeth& answer, Psn psn);

}  // namespace cepheus::fabric
