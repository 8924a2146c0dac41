// A member's port is its own, or one of the equal ports towards its switch. That choice is made
// once for each group and class of routes, so that all parts of a list and repeats agree: a port
// that is in the tree already, else the one with the fewest groups, ties by a hash of group and
// switch. The leader's side is never chosen. Refused: no route, too many paths, a port that no
// packet fits through.
#include "switch-emulator/engine/registration/placement.h"

#include "switch-emulator/engine/call.h"
#include "wire/situation.h"
#include "wire/splitmix.h"

namespace cepheus::fabric {

using wire::MrpReject;

Refusal Placement::place_all(Call& call, GroupInstance& table,
                             std::span<const wire::MrpMember> members) {
  std::array<Roster::Member, wire::MrpMessage::kMaxMembers> behind;
  std::size_t count = 0;
  for (const wire::MrpMember& m : members) {
    PortId port;
    if (const Refusal refusal = place(call, table, m, port)) return refusal;
    if (!leads_to(table.mft, port)) {
      const bool by_trunk = call.port(port).kind == PortKind::kSwitch;
      behind[count++] = {m.host, m.qpn, port, m.control_port, by_trunk};
    }
  }
  table.roster.add(std::span(behind).first(count));
  return {};
}

// Finds the port towards a member and makes it a path of the group.
Refusal Placement::place(Call& call, GroupInstance& table, const wire::MrpMember& member,
                         PortId& port) {
  if (member.host.is_unset() || member.qpn.value() == 0 ||
      call.config.mcst_pool.contains(member.host)) {
    return {MrpReject::kMalformed, member};
  }
  const auto route = routes_.find(member.host);
  if (!route) return {MrpReject::kNoRoute, member};
  const PortId first = routes_.ports(*route).front();
  const PortConfig& next = call.port(first);
  const bool is_host = next.kind == PortKind::kHost && next.host == member.host;
  const auto chosen = is_host && routes_.is_up(first) ? first : choose_port(call, table, *route);
  if (!chosen) return {MrpReject::kNoRoute, member};
  port = *chosen;
  if (call.rules().least_path_mtu && call.port(port).path_mtu() == 0) {
    return {MrpReject::kTooLong, member};
  }

  Mft& mft = table.mft;
  PathNo number = mft.find(port);
  if (number == kNoPath) {
    if (mft.paths.size() >= call.config.max_paths) return {MrpReject::kTooManyPaths, member};
    if (!groups_.has_memory_for_path(table)) return {MrpReject::kNoMemory, member};
    number = groups_.add_path(table, port, is_host);
  }
  if (!is_host) return {};
  Path& path = mft.paths[number];
  const bool is_set = path.qpn.value() != 0;
  if (is_set && path.qpn != member.qpn) return {MrpReject::kMalformed, member};
  path.qpn = member.qpn;
  return {};
}

// Equal-cost choice, made once per group and class of routes, so that repeats and later members
// agree with it: a port that is already in the tree, else the one that the fewest groups use. Never
// back towards the leader, nor to a switch without a route. A switch knows of its own groups only.
// So a hash of group and switch breaks ties; otherwise groups of switches with few groups would all
// meet at the first spine.
std::optional<PortId> Placement::choose_port(const Call& call, GroupInstance& table,
                                             Routes::ClassNo c) {
  PortId& chosen = table.chosen[c];
  if (chosen != PortId()) {
    if (routes_.serves(chosen, c)) return chosen;
    CEPHEUS_RARE_SITUATION("the trunk that a group has chosen fails during its registration");
    return std::nullopt;
  }
  std::optional<PortId> best;
  const auto& ports = routes_.ports(c);
  const std::size_t start =
      wire::splitmix(table.mft.id.value(), call.config.address.value()) % ports.size();
  for (std::size_t i = start; i != start + ports.size(); ++i) {
    const PortId port = ports[i % ports.size()];
    if (port == call.ingress() || !routes_.serves(port, c) ||
        call.port(port).kind == PortKind::kHost) {
      continue;
    }
    if (table.mft.find(port) != kNoPath) {
      best = port;
      break;
    }
    if (best) CEPHEUS_SITUATION("a group has several trunks to choose from");
    const bool fewer = best && groups_.groups_over(port) < groups_.groups_over(*best);
    if (!best || (fewer && call.rules().fewest_groups)) best = port;
  }
  if (best) chosen = *best;
  return best;
}

}  // namespace cepheus::fabric
