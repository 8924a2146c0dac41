#include "switch-emulator/engine/registration/ageing.h"

#include <algorithm>
#include <utility>

#include "switch-emulator/engine/eviction.h"
#include "switch-emulator/engine/registration/registration_messages.h"
#include "wire/situation.h"

namespace cepheus::fabric {

using wire::MrpReject;

// If the leader's port is down, the leader is not the source and the group has evictions, the
// leader is evicted first, so that the messages in flight complete. Otherwise the group ends.
void Ageing::age(Call& call, McstId id) {
  GroupEntry& entry = *groups_.find(id);
  if (entry.orphaned && !entry.leaderless && entry.is_active &&
      !(entry.table.kind.loss_ends && call.rules().loss_ends)) {
    Mft& mft = entry.table.mft;
    const bool has_receivers =
        mft.paths.size() > 2 || !std::ranges::all_of(mft.paths, &Path::is_host);
    if (!mft.behaviour->may_outlive(mft.leader))
      CEPHEUS_SITUATION("the port of a leader goes down for good during its own turn");
    if (mft.paths[mft.leader].is_host && mft.behaviour->may_outlive(mft.leader) && has_receivers) {
      CEPHEUS_SITUATION(
          "the leader's port stays down, and its group's messages complete without it");
      entry.leaderless = true;
      entry.orphaned = call.now;
      const PathNo leader = std::exchange(mft.leader, kNoPath);
      call.count(Counter::kPathsEvicted);
      evict(call, groups_, entry, leader);
      return groups_.reschedule(id, entry);
    }
  }
  if (!entry.is_active) CEPHEUS_SITUATION("a registration ages that no leader goes on with");
  call.count(Counter::kStaleTableAged);
  dissolve(call, id, entry.orphaned ? MrpReject::kEvicted : MrpReject::kNone);
}

// No leader repeats a switch's UNREGISTER, and a leader's repeats name no evicted member. Switches
// that got the first pass this one on.
void Ageing::on_timer(Call& call) {
  for (; !repeats_.empty() && repeats_.front().at <= call.now; repeats_.pop_front()) {
    const Repeat& due = repeats_.front();
    const Tombstone* stone = groups_.find_tombstone(due.id);
    if (stone == nullptr || stone->epoch != due.epoch) continue;
    if (!stone->by_switch && stone->roster.awaited() == 0) continue;
    if (stone->by_switch)
      CEPHEUS_SITUATION("a switch repeats its UNREGISTER to switches behind it");
    if (!stone->by_switch) CEPHEUS_SITUATION("a switch repeats its leader's UNREGISTER");
    pass_on_aged_again(call, {due.id, due.epoch, stone->leader, due.why}, stone->ports);
  }
}

void Ageing::repeat_later(const Call& call, McstId id, MrpReject why) {
  const Tombstone* stone = groups_.find_tombstone(id);
  const auto is_trunk = [&](PortId p) { return call.port(p).kind != PortKind::kHost; };
  if (stone == nullptr || std::ranges::none_of(stone->ports, is_trunk)) return;
  if (repeats_.size() >= call.config.max_tombstones) repeats_.pop_front();
  repeats_.push_back({call.now + call.config.rest / 2, id, stone->epoch, why});
}

void Ageing::dissolve(Call& call, McstId id, MrpReject why) {
  GroupEntry& entry = *groups_.find(id);
  GroupInstance& table = entry.table;
  std::vector<PortId> branches;
  list_branches(table.mft, branches);
  pass_on_aged(call, {id, table.mft.epoch, entry.leader, why}, branches, table.roster);
  table.roster.begin(wire::MrpType::kUnregister);  // no answers are awaited
  groups_.bury(call, id);
  if (Tombstone* stone = groups_.find_tombstone(id)) stone->by_switch = true;
  repeat_later(call, id, why);
}

}  // namespace cepheus::fabric
