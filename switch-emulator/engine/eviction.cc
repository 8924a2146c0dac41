#include "switch-emulator/engine/eviction.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/feedback.h"
#include "switch-emulator/engine/registration_messages.h"
#include "switch-emulator/engine/replication.h"

namespace cepheus::fabric {
namespace {

// What the leader should know of the receiver behind `path`; 0: nothing.
std::uint8_t flags_of(const Routes& routes, const Group& group, PathNo path) {
  const bool owes = before(group.paths[path].ack, group.sent);
  const bool down = !routes.is_up(group.paths[path].port);
  return static_cast<std::uint8_t>((down ? wire::kMemberDown : 0) | (owes ? wire::kMemberOwes : 0));
}

// The source, if it is gone, or if somebody waits for its turn to end: then it is the source who
// should send again, and who lags may only have missed something. Its count is that of its packets.
std::optional<wire::MrpMember> report_of_source(const Routes& routes, const Group& group) {
  if (group.source == kNoPath) return std::nullopt;
  const Path& path = group.paths[group.source];
  const bool down = path.is_host && !routes.is_up(path.port);
  const bool owes = !group.ended || before(group.min(), group.sent);
  const bool waited_for = !group.gate.frames.empty() || group.gate.answered != kNoPath;
  if (!down && !(owes && waited_for)) return std::nullopt;
  return wire::MrpMember{
      group.source_ip, Qpn(group.sent.value()),
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
                  std::optional<PathNo> only) {
  wire::MrpMessage message;
  message.header.type = wire::MrpType::kReport;
  message.header.epoch = group.epoch;
  message.header.mcst_id = group.id;
  message.header.instance = leader.instance;
  const auto source = report_of_source(routes, group);
  if (source && (!only || *only == group.source)) message.add(*source);
  const bool turn_waits = source && (source->flags & wire::kMemberOwes) != 0;
  for (PathNo i = 0; i < group.paths.size(); ++i) {
    const Path& path = group.paths[i];
    if ((only && *only != i) || !path.is_host || i == group.leader || i == group.source) continue;
    const std::uint8_t flags = flags_of(routes, group, i);
    if (flags == 0 || (turn_waits && flags == wire::kMemberOwes)) continue;
    if (!message.add({path.host, Qpn(path.heard), flags})) break;  // the next QUERY is for the rest
  }
  if (message.member_count > 0) send_report(call, leader, group, message);
}

void evict(Call& call, GroupTable& groups, Group& group, PathNo path) {
  if (!call.rules().eviction_counts) return;
  groups.remove_path(group, path, call.out);
  call.icrc = wire::Icrc::kPresent;
  recheck(call, group);
  try_gate(call, group);
}

}  // namespace cepheus::fabric
