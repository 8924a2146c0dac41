#include "switch-emulator/engine/eviction.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/registration_messages.h"

namespace cepheus::fabric {
namespace {

bool is_down(const Routes& routes, const Group& group, PathNo path) {
  return group.evidence[path].was_down || !routes.is_up(group.paths[path].port);
}

// What the leader should know of the receiver behind `path`; 0: nothing.
std::uint8_t flags_of(const Call& call, const Routes& routes, const Group& group, PathNo path) {
  const bool asked =
      group.evidence[path].unanswered.go_on(call.now) || !call.rules().lagging_is_silence;
  // Both are the turn's: within Turn::kMostUnderWay.
  const bool lags = before(group.paths[path].acked(), group.turn.sent());
  const bool down = is_down(routes, group, path);
  return static_cast<std::uint8_t>((down ? wire::kMemberDown : 0) |
                                   (lags && asked ? wire::kMemberOwes : 0) |
                                   (lags && !asked && !down ? wire::kMemberLate : 0));
}

// The source, as long as not everybody has all of its turn: who lags may only have missed
// something, and it is the source who should send again. Its count is that of its packets, which
// only its own leaf sees all of.
std::optional<wire::MrpMember> report_of_source(const Routes& routes, const Group& group) {
  const PathNo source = group.turn.source();
  if (source == kNoPath || source == group.leader) return std::nullopt;
  if (!group.paths[source].is_host) return std::nullopt;
  const bool down = is_down(routes, group, source);
  const bool owes = !group.turn.is_settled();
  if (!down && !owes) return std::nullopt;
  return wire::MrpMember{
      group.turn.name().source,
      Qpn(static_cast<std::uint32_t>(group.stats.data_packets) & Psn::kMask),
      static_cast<std::uint8_t>((down ? wire::kMemberDown : 0) | wire::kMemberSource |
                                (owes ? wire::kMemberOwes : 0))};
}

}  // namespace

std::optional<PortId> own_port(const Call& call, const Routes& routes, Ipv4 host) {
  const auto route = routes.find(host);
  if (!route) return std::nullopt;
  const PortId port = routes.ports(*route).front();
  const PortConfig& config = call.port(port);
  return config.kind == PortKind::kHost && config.host == host ? std::optional(port) : std::nullopt;
}

void report_hosts(Call& call, const Routes& routes, const Leader& leader, const Group& group,
                  std::optional<PathNo> only, bool even_if_empty) {
  wire::MrpMessage message;
  message.header.type = wire::MrpType::kReport;
  message.header.epoch = group.epoch;
  message.header.mcst_id = group.id;
  message.header.instance = leader.instance;
  const auto source = report_of_source(routes, group);
  if (source && (!only || *only == group.turn.source())) message.add(*source);
  // Those who may be gone first, whatever there is room for; the next QUERY is for the rest.
  for (const bool late : {false, true}) {
    for (PathNo i = 0; i < group.paths.size(); ++i) {
      const Path& path = group.paths[i];
      if ((only && *only != i) || !path.is_host || i == group.turn.source()) continue;
      const std::uint8_t flags = flags_of(call, routes, group, i);
      if (flags == 0 || (flags == wire::kMemberLate) != late) continue;
      if (i == group.leader && !late) continue;
      if (!message.add({call.port(path.port).host, Qpn(group.evidence[i].heard), flags})) break;
    }
  }
  if (message.member_count > 0 || even_if_empty) send_report(call, leader, group, message);
}

void report_lost_path(Call& call, const Leader& leader, const GroupInstance& table, PathNo path) {
  const Group& group = table.group;
  if (group.leader == kNoPath) return;
  wire::MrpMessage message;
  message.header.type = wire::MrpType::kReject;
  message.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kPathLost);
  message.header.epoch = group.epoch;
  message.header.mcst_id = group.id;
  message.header.instance = leader.instance;
  if (const Roster::Member* member = table.roster.find_behind(group.paths[path].port)) {
    message.add(member->name());
  }
  send_to_leader(call, group.paths[group.leader].port, leader, message);
  call.count(Counter::kMrpReject);
}

void evict(Call& call, GroupTable& groups, Group& group, PathNo path) {
  if (!call.rules().eviction_counts) return;
  groups.remove_path(group, path, call.out);
  const PortId ingress = call.ingress;  // what the gate lets through came by another
  call.icrc = wire::Icrc::kPresent;
  group.strategies.behaviour->on_path_left(call, group);
  call.ingress = ingress;
}

}  // namespace cepheus::fabric
