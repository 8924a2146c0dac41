#include "switch-emulator/engine/registration/shares.h"

#include "switch-emulator/engine/registration/registration_messages.h"
#include "wire/situation.h"

namespace cepheus::fabric {

// A path towards the leader counts, too: any member may be the source.
wire::MrpPath path_of(const GroupTable& groups, const GroupEntry& entry) {
  wire::MrpPath least = entry.table.roster.path();
  for (const Path& path : entry.table.group.paths) {
    least.narrow(groups.path_over(path.port, entry.is_in_use));
  }
  if (least.window != 0) least.narrow({0, entry.table.group.behaviour->window()});
  return least;
}

void report_path(Call& call, const GroupTable& groups, GroupEntry& entry) {
  const Group& group = entry.table.group;
  entry.table.reported = path_of(groups, entry);
  wire::MrpMessage message;
  message.header.type = wire::MrpType::kReport;
  message.header.epoch = group.epoch;
  message.header.mcst_id = group.id;
  message.header.instance = entry.leader.instance;
  message.path = entry.table.reported;
  send_report(call, entry.leader, group, message);
}

void report_path_change(Call& call, const GroupTable& groups, GroupEntry& entry) {
  // A connected group keeps its path MTU.
  if (entry.is_active && path_of(groups, entry).window != entry.table.reported.window) {
    CEPHEUS_SITUATION("an active group's window changes with the groups beside it");
    report_path(call, groups, entry);
  }
}

void report_share_changes(Call& call, GroupTable& groups) {
  if (!groups.take_share_changes()) return;
  const auto own = Handling::none(call);
  groups.for_each([&](McstId, GroupEntry& entry) {
    if (entry.is_in_use) report_path_change(call, groups, entry);
  });
}

void report_too_long(Call& call, GroupEntry& entry, PortId port) {
  GroupInstance& table = entry.table;
  const Group& group = table.group;
  if (call.now < table.too_long_again || group.leader == kNoPath) return;
  table.too_long_again = call.now + kBetweenTooLong;
  wire::MrpMessage message;
  message.header.type = wire::MrpType::kReject;
  message.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kTooLong);
  message.header.epoch = group.epoch;
  message.header.mcst_id = group.id;
  message.header.instance = entry.leader.instance;
  // 0 would mean that no limit is known.
  if (const auto mtu = call.port(port).path_mtu(); mtu != 0) message.path = wire::MrpPath{mtu, 0};
  const PathNo path = group.find(port);  // none: the member was evicted meanwhile
  if (path != kNoPath && group.paths[path].is_host) {
    message.add({call.port(port).host, group.paths[path].qpn});
  } else if (const auto behind = table.roster.one_behind(port)) {
    message.add(*behind);
  }
  send_to_leader(call, group.paths[group.leader].port, entry.leader, message);
  call.count(Counter::kMrpReject);
}

}  // namespace cepheus::fabric
