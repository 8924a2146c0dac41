// The switch's half of MRP (docs/protocol.md, "Registration"; paper III-C): builds, activates and
// frees tables on the leader's request.
//
// REGISTER splits its member list by output port; CONNECT, ACTIVATE, UNREGISTER and REFRESH follow
// the tree.
// Answers go up to the leader (answers.h). QUERY and EVICT are for groups in operation: the leader
// requests a REPORT of lagging members, and evicts members (eviction.h). All messages are addressed
// to the McstID; only those to a host have that host's address, and the port of the process there.
//
//            REGISTER(e)            ACTIVATE(e)              UNREGISTER(e), age
//   (none) -------------> pending -------------> current -----------------------> tombstone
//   --rest--> (none)
//                             ^                     |
//                             +--- REGISTER(e+) ----+   replaces it: its UNREGISTER was lost
#pragma once

#include <algorithm>
#include <span>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/registration/admission.h"
#include "switch-emulator/engine/registration/ageing.h"
#include "switch-emulator/engine/registration/answers.h"
#include "switch-emulator/engine/registration/placement.h"
#include "wire/mrp.h"
#include "wire/publication.h"
#include "wire/roce.h"

namespace cepheus::fabric {

class Split;

class Registrar {
 public:
  Registrar(const SwitchConfig& config, const Routes& routes, GroupTable& groups)
      : routes_(routes),
        groups_(groups),
        answers_(groups),
        ageing_(groups),
        admission_(config, routes, groups, ageing_),
        tree_(routes, groups) {}

  // A datagram on the registration port with a destination in the pool of McstIDs.
  void on_datagram(Call& call, const Frame& frame, const wire::UdpHeaders& headers);
  void on_timer(Call& call) {
    answers_.on_timer(call);
    ageing_.on_timer(call);
  }
  Instant deadline() const { return std::min(answers_.deadline(), ageing_.deadline()); }
  // The group was neither used nor refreshed for too long.
  void age(Call& call, McstId id) { ageing_.age(call, id); }
  // A host's port went down: informs the leaders of its groups at once.
  void on_port_down(Call& call, PortId down);
  // It is up again: a member with feedback from now on is the same as before.
  void on_port_up(PortId up);

 private:
  void on_register(Call& call, const MrpRequest& request);
  void on_connect(Call& call, const MrpRequest& request);
  void on_activate(Call& call, const MrpRequest& request);
  void on_unregister(Call& call, const MrpRequest& request);
  void on_refresh(Call& call, const MrpRequest& request);
  void on_query(Call& call, const MrpRequest& request);
  void reject_if_forgotten(Call& call, const MrpRequest& request);
  void on_evict(Call& call, const MrpRequest& request);
  void on_give_up(Call& call, const MrpRequest& request);
  void on_alive(Call& call, const MrpRequest& request);
  void on_publish(Call& call, const wire::UdpDatagram& datagram,
                  const wire::Publication& publication);

  void request_confirms(Call& call, const MrpRequest& request, Roster& roster,
                        std::span<const PortId> ports, std::uint16_t flags = 0,
                        const Mft* mft = nullptr);
  bool add_by_trunk(const Roster& roster, const wire::MrpMember& member, Split& parts) const;

  // The entry that `request` may change: of this leader, by the port that leads to it. Null and
  // counted if none.
  GroupEntry* find_commanded(Call& call, const MrpRequest& request);
  // The same, of the epoch with active data.
  GroupEntry* find_active(Call& call, const MrpRequest& request);

  const Routes& routes_;
  GroupTable& groups_;
  Answers answers_;
  Ageing ageing_;
  Admission admission_;
  Placement tree_;
  std::vector<PortId> branches_;  // of the current group; a member for reuse
};

}  // namespace cepheus::fabric
