// The switch's half of MRP (docs/protocol.md, "Registration"; paper III-C): tables built,
// activated, freed at a leader's word.
//
// REGISTER splits its member list by output port; ACTIVATE, UNREGISTER and REFRESH follow the tree.
// Answers go up to the leader (answers.h). QUERY and EVICT are of the time in operation: the leader
// asks who holds the group up, and takes members out (eviction.h). All this is addressed to the
// McstID; only what goes to a host has that host's address, and the port of the process there.
//
//            REGISTER(e)            ACTIVATE(e)              UNREGISTER(e), age
//   (none) -------------> pending -------------> current -----------------------> tombstone
//   --rest--> (none)
//                             ^                     |
//                             +--- REGISTER(e+) ----+   built beside, takes over at its own
//                             ACTIVATE
#pragma once

#include <span>

#include "switch-emulator/engine/answers.h"
#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/register_rate.h"
#include "switch-emulator/engine/routes.h"
#include "wire/mrp.h"
#include "wire/publication.h"
#include "wire/roce.h"

namespace cepheus::fabric {

// Why a registration can't be.
struct Refusal {
  wire::MrpReject reason = wire::MrpReject::kNone;
  wire::MrpMember member;  // whom it is about, if anyone

  explicit operator bool() const { return reason != wire::MrpReject::kNone; }
};

class Split;

// Which ports a registration makes paths of its group. A switch has one way to build trees; what
// data then does on a path is the group's behaviour.
class TreeBuilder {
 public:
  virtual ~TreeBuilder() = default;
  // Makes paths of the group that lead to `members`, and puts those behind this switch on its
  // roster. A refusal leaves what was placed before it.
  virtual Refusal place_all(Call& call, GroupInstance& table,
                            std::span<const wire::MrpMember> members) = 0;
};

// A control datagram that was understood.
struct MrpRequest {
  const wire::UdpDatagram& datagram;
  const wire::MrpMessage& message;

  McstId id() const { return message.header.mcst_id; }
  std::uint16_t epoch() const { return message.header.epoch; }
  Leader leader() const {
    return {datagram.ip.source, message.header.instance, datagram.udp.source_port};
  }
};

class Registrar {
 public:
  Registrar(const SwitchConfig& config, const Routes& routes, GroupTable& groups,
            std::unique_ptr<TreeBuilder> tree)
      : routes_(routes), groups_(groups), answers_(groups), tree_(std::move(tree)), rate_(config) {}

  // A datagram on the registration port whose destination is in the pool of McstIDs.
  void on_datagram(Call& call, const Frame& frame, const wire::UdpHeaders& headers);
  void on_timer(Call& call) { answers_.on_timer(call); }
  Instant deadline() const { return answers_.deadline(); }
  // Frees a group that nobody has used or refreshed for too long, and tells those behind this
  // switch.
  void age(Call& call, McstId id);
  // A host's port went down: the leaders of its groups are told at once.
  void on_port_down(Call& call, PortId down);
  // It is up again: a member that is heard from now on is the same as before.
  void on_port_up(PortId up);

 private:
  void on_register(Call& call, const MrpRequest& request);
  void on_activate(Call& call, const MrpRequest& request);
  void on_unregister(Call& call, const MrpRequest& request);
  void on_refresh(Call& call, const MrpRequest& request);
  void on_query(Call& call, const MrpRequest& request);
  void say_if_forgotten(Call& call, const MrpRequest& request);
  void on_evict(Call& call, const MrpRequest& request);
  void on_give_up(Call& call, const MrpRequest& request);
  void on_alive(Call& call, const MrpRequest& request);
  void on_publish(Call& call, const wire::UdpDatagram& datagram, const wire::Publication& asked);
  void dissolve(Call& call, McstId id, wire::MrpReject why);

  bool is_stale(const MrpRequest& request);
  bool is_under_way(const MrpRequest& request);
  Refusal refuse(Call& call, const MrpRequest& request);
  GroupEntry& open_pending(Call& call, const MrpRequest& request);
  void ask(Call& call, const MrpRequest& request, Roster& roster, std::span<const PortId> ports,
           std::uint16_t flags = 0);
  bool add_by_trunk(const Roster& roster, const wire::MrpMember& member, Split& parts) const;
  void close_refused(Call& call, McstId id, GroupEntry& entry);

  // The entry that `request` may command: of this leader, by the port that leads to it. Null and
  // counted if none.
  GroupEntry* find_commanded(Call& call, const MrpRequest& request);
  // The same, of the epoch for which data flows.
  GroupEntry* find_active(Call& call, const MrpRequest& request);

  const Routes& routes_;
  GroupTable& groups_;
  Answers answers_;
  const std::unique_ptr<TreeBuilder> tree_;
  RegisterRate rate_;
  std::vector<PortId> branches_;  // of the group at hand; a member to be reused
};

}  // namespace cepheus::fabric
