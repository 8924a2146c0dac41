#include "switch-emulator/engine/registration/shares.h"

#include "switch-emulator/engine/registration/registration_messages.h"
#include "wire/situation.h"

namespace cepheus::fabric {

// A path towards the leader counts, too: any member may be the source.
wire::MrpPath path_of(const GroupTable& groups, const GroupEntry& entry) {
  wire::MrpPath least = entry.table.roster.path();
  for (const Path& path : entry.table.mft.paths) {
    least.narrow(groups.path_over(path.port, entry.is_in_use));
  }
  if (least.window != 0) least.narrow({0, entry.table.mft.behaviour->window()});
  return least;
}

void report_path(Call& call, const GroupTable& groups, GroupEntry& entry) {
  const Mft& mft = entry.table.mft;
  entry.table.reported = path_of(groups, entry);
  auto message = message_of(wire::MrpType::kReport, mft.id, mft.epoch, entry.leader);
  message.path = entry.table.reported;
  send_report(call, entry.leader, mft, message);
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

}  // namespace cepheus::fabric
