#include "switch-emulator/engine/eviction.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/registration/refusals.h"
#include "switch-emulator/engine/registration/registration_messages.h"
#include "wire/situation.h"

namespace cepheus::fabric {
namespace {

// The order of hosts in a REPORT with limited room: the next QUERY gets the rest. The source comes
// first: a lagging member may only have lost a packet, and the source should send it again. Then
// hosts that may be gone.
enum class Rank : std::uint8_t { kSource, kSilent, kLate };

Rank rank_of(std::uint8_t flags) {
  if ((flags & wire::kMemberSource) != 0) return Rank::kSource;
  return flags == wire::kMemberLate ? Rank::kLate : Rank::kSilent;
}

}  // namespace

std::optional<PortId> own_port(const Call& call, const Routes& routes, Ipv4 host) {
  const auto route = routes.find(host);
  if (!route) return std::nullopt;
  const PortId port = routes.ports(*route).front();
  const PortConfig& config = call.port(port);
  return config.kind == PortKind::kHost && config.host == host ? std::optional(port) : std::nullopt;
}

void report_hosts(Call& call, const Routes& routes, const Leader& leader, const Mft& mft,
                  std::optional<PathNo> only, bool even_if_empty) {
  auto message = message_of(wire::MrpType::kReport, mft.id, mft.epoch, leader);
  for (const Rank rank : {Rank::kSource, Rank::kSilent, Rank::kLate}) {
    for (PathNo i = 0; i < mft.paths.size(); ++i) {
      const Path& path = mft.paths[i];
      if ((only && *only != i) || !path.is_host) continue;
      const HostReport report = mft.behaviour->report(call, i, routes.is_up(path.port));
      if (report.flags == 0 || rank_of(report.flags) != rank) continue;
      if (i == mft.leader && rank != Rank::kLate) continue;
      if (report.flags == wire::kMemberLate) CEPHEUS_SITUATION("a switch reports a late member");
      if ((report.flags & wire::kMemberDown) != 0)
        CEPHEUS_SITUATION("a switch reports a member behind a port that is down");
      if ((report.flags & wire::kMemberOwes) != 0)
        CEPHEUS_SITUATION("a switch reports a member that owes packets");
      if (!message.add({call.port(path.port).host, Qpn(report.packets), report.flags})) break;
    }
  }
  if (message.member_count > 0 || even_if_empty) send_report(call, leader, mft, message);
}

void evict(Call& call, GroupTable& groups, GroupEntry& entry, PathNo path) {
  if (!call.rules().eviction_counts) return;
  if (entry.table.mft.paths.size() == 2) CEPHEUS_SITUATION("an eviction leaves one path");
  const auto own = Handling::none(call);
  groups.remove_path(call, entry, path);
  // A copy that the gate has let through.
  if (const auto port = call.take_too_long()) report_too_long(call, entry, *port);
}

}  // namespace cepheus::fabric
