// The switch's half of MRP (design "Registration", paper III-C): tables built, activated, freed at
// a leader's word.
//
// REGISTER splits its member list by output port; ACTIVATE, UNREGISTER and REFRESH follow the tree.
// CONFIRM and REJECT are unicast to the leader and never come here. QUERY and EVICT are of the time
// in operation: the leader asks who holds the group up, and takes members out (eviction.h).
//
//            REGISTER(e)            ACTIVATE(e)              UNREGISTER(e), age
//   (none) -------------> pending -------------> current -----------------------> tombstone
//   --rest--> (none)
//                             ^                     |
//                             +--- REGISTER(e+) ----+   built beside, takes over at its own
//                             ACTIVATE
#pragma once

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/routes.h"
#include "wire/roce.h"

namespace cepheus::fabric {

// A control datagram that was understood.
struct MrpRequest {
  const wire::UdpDatagram& datagram;
  const wire::MrpMessage& message;

  McstId id() const { return message.header.mcst_id; }
  std::uint16_t epoch() const { return message.header.epoch; }
  Leader leader() const { return {datagram.ip.source, message.header.instance}; }
};

class Registrar {
 public:
  Registrar(const Routes& routes, GroupTable& groups) : routes_(routes), groups_(groups) {}

  // A datagram on the registration port whose destination is in the pool of McstIDs.
  void on_datagram(Call& call, const Frame& frame);
  // May a host send this to another one? It speaks about itself, or tells a member that it gave the
  // registration up.
  bool may_answer(const Call& call, const Frame& frame, const wire::Ipv4Header& ip) const;
  // Frees a group that nobody has used or refreshed for too long, and tells those behind this
  // switch.
  void age(Call& call, McstId id);
  // A host's port went down: the leaders of its groups are told at once.
  void on_port_down(Call& call);
  // It is up again: a member that is heard from now on is the same as before.
  void on_port_up(Call& call);

 private:
  struct Refusal {
    wire::MrpReject reason = wire::MrpReject::kNone;
    wire::MrpMember member;  // whom it is about, if anyone

    explicit operator bool() const { return reason != wire::MrpReject::kNone; }
  };
  using Placement = std::array<PortId, wire::MrpMessage::kMaxMembers>;  // output port by member

  void on_register(Call& call, const MrpRequest& request);
  void on_activate(Call& call, const MrpRequest& request);
  void on_unregister(Call& call, const MrpRequest& request);
  void on_refresh(Call& call, const MrpRequest& request);
  void on_query(Call& call, const MrpRequest& request);
  void on_evict(Call& call, const MrpRequest& request);
  void dissolve(Call& call, McstId id, wire::MrpReject why);

  bool is_stale(const MrpRequest& request);
  Refusal refuse(Call& call, const MrpRequest& request);
  GroupEntry& open_pending(Call& call, const MrpRequest& request);
  Refusal place_all(Call& call, Registration& table, const MrpRequest& request, Placement& ports);
  Refusal place(Call& call, Registration& table, const wire::MrpMember& member, PortId& port);
  std::optional<PortId> choose_port(const Call& call, Registration& table, Routes::ClassNo c);
  void close_refused(Call& call, McstId id, GroupEntry& entry);

  // The entry that `request` may command: of this leader, by the port that leads to it. Null and
  // counted if none.
  GroupEntry* find_commanded(Call& call, const MrpRequest& request);

  const Routes& routes_;
  GroupTable& groups_;
};

}  // namespace cepheus::fabric
