#include "switch-emulator/engine/eviction.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/feedback.h"
#include "switch-emulator/engine/registration_messages.h"
#include "switch-emulator/engine/replication.h"

namespace cepheus::fabric {
namespace {

// What the leader should know of the host behind `path`; 0: nothing.
std::uint8_t flags_of(const Routes& routes, const Group& group, PathNo path) {
  const bool is_source = path == group.source;
  const bool owes = is_source ? !group.ended || before(group.min(), group.sent)
                              : before(group.paths[path].ack, group.sent);
  const bool down = !routes.is_up(group.paths[path].port);
  if (!down && (is_source || !owes)) return 0;
  return static_cast<std::uint8_t>((down ? wire::kMemberDown : 0) |
                                   (is_source ? wire::kMemberSource : 0) |
                                   (owes ? wire::kMemberOwes : 0));
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
  for (PathNo i = 0; i < group.paths.size(); ++i) {
    const Path& path = group.paths[i];
    if ((only && *only != i) || !path.is_host || i == group.leader) continue;
    const std::uint8_t flags = flags_of(routes, group, i);
    if (flags == 0) continue;
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
