#include "switch-emulator/engine/registration/ageing.h"

#include <algorithm>
#include <iterator>
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

void Ageing::on_timer(Call& call) {
  while (deadline() <= call.now) {
    Repeat due = std::move(repeats_.front());
    repeats_.pop_front();
    if (send(call, due)) add_again(call, std::move(due));
  }
}

// Whether the switch behind the trunk may have missed UNREGISTER. A newer epoch's REGISTER tells it the
// same.
bool Ageing::needs(const AgedGroup& group, PortId trunk) const {
  if (const GroupEntry* entry = groups_.find(group.id)) {
    return entry->leader != group.leader || entry->table.mft.find(trunk) == kNoPath;
  }
  const Tombstone* stone = groups_.find_tombstone(group.id);
  if (stone == nullptr) return true;
  if (stone->epoch == group.epoch) return !stone->roster.has_confirmed(trunk);
  return std::ranges::find(stone->ports, trunk) == stone->ports.end();
}

// False: it is not needed again. Switches that have the UNREGISTER pass this one on.
bool Ageing::send(Call& call, Repeat& repeat) const {
  std::erase_if(repeat.trunks, [&](PortId trunk) { return !needs(repeat.group, trunk); });
  if (repeat.trunks.empty()) return false;
  CEPHEUS_SITUATION("a switch repeats UNREGISTER over a trunk");
  pass_on_aged_again(call, repeat.group, repeat.trunks);
  return --repeat.left > 0;
}

void Ageing::add_again(const Call& call, Repeat repeat) {
  repeat.at = call.now + call.config.rest / (kRepeats + 1);
  repeats_.push_back(std::move(repeat));
}

// Beyond max_tombstones the oldest one is sent for the last time, and at once.
void Ageing::add(Call& call, const AgedGroup& group, std::span<const PortId> ports) {
  Repeat repeat{{}, group, {}};
  std::ranges::copy_if(ports, std::back_inserter(repeat.trunks),
                       [&](PortId port) { return call.port(port).kind != PortKind::kHost; });
  if (repeat.trunks.empty()) return;
  if (repeats_.size() >= call.config.max_tombstones && !repeats_.empty()) {
    send(call, repeats_.front());
    repeats_.pop_front();
  }
  add_again(call, std::move(repeat));
}

void Ageing::repeat_later(Call& call, McstId id, MrpReject why) {
  const Tombstone* stone = groups_.find_tombstone(id);
  if (stone != nullptr) add(call, {id, stone->epoch, stone->leader, why}, stone->ports);
}

void Ageing::replace(Call& call, McstId id) {
  const GroupEntry& entry = *groups_.find(id);
  const Mft& mft = entry.table.mft;
  std::vector<PortId> branches;
  list_branches(mft, branches);
  add(call, {id, mft.epoch, entry.leader, MrpReject::kNone}, branches);
  groups_.erase(call, id);
}

void Ageing::end_older(Call& call, McstId id) { dissolve(call, id, MrpReject::kNone); }

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
