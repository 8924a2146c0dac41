// The fabric's groups that reduce: each end is a member of a ReducingGroup. An end that has failed
// hands over the results that have come, and then ends its gathers. Some completions are flushed:
// their results are not handed over.
#include <mcast/reduce.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/fakes/fabric_calls.h"

int mcast_group::place() const {
  return static_cast<int>(std::ranges::find(members, number) - members.begin());
}

namespace cepheus::coll::fake {

void Fabric::begin_reductions(mcast_group& leader) {
  const auto group = std::make_shared<ReducingGroup>(static_cast<int>(leader.members.size()),
                                                     is_flat && has_ascending_addresses);
  for (const std::uint32_t number : leader.members) {
    mcast_group* const member = find(number);
    if (member != nullptr && member->wire == leader.wire) {
      member->reduction = group;
      if (member->is_deaf) group->deafen(member->place());
    } else {
      const auto at = std::ranges::find(leader.members, number) - leader.members.begin();
      group->fail(static_cast<int>(at), false);
    }
  }
}

bool Fabric::may_move(const mcast_group& end) const {
  return end.reduction != nullptr && end.status == MCAST_OK && !is_disconnected(end.member);
}

std::vector<Fabric::Move> Fabric::moves() const {
  std::vector<Move> found;
  const auto has = [](const std::vector<int>& all, int one) {
    return std::ranges::find(all, one) != all.end();
  };
  for (const auto& each : groups_) {
    if (!may_move(*each)) continue;
    const int place = each->place();
    if (has(each->reduction->contributing(), place)) found.push_back({each->number, false});
    if (has(each->reduction->receiving(), place)) found.push_back({each->number, true});
  }
  return found;
}

void Fabric::move(const Move& move) {
  mcast_group& end = *find(move.end);
  if (!move.is_result) return end.reduction->move_contribution(end.place());
  end.reduction->move_result(end.place());
  if (end.is_deaf || end.is_mute) lost_.emplace(end.member, kReduced);
}

void Fabric::move_all() {
  for (const std::uint32_t end : registering()) conclude(end);
  for (auto ends = deliverable(); !ends.empty(); ends = deliverable()) deliver(ends.front());
  for (auto all = moves(); !all.empty(); all = moves()) move(all.front());
}

// A late member is waited for; a lost one's switch ends the group.
bool Fabric::is_stalled(const mcast_group& end) const {
  if (end.reduction == nullptr || end.gathers.empty()) return false;
  if (end.is_mute) return true;
  return std::ranges::any_of(end.members, [&](std::uint32_t number) {
    const mcast_group* const other = find(number);
    return other == nullptr || !may_move(*other);
  });
}

void Fabric::progress_reductions(std::uint32_t number) {
  mcast_group* end = find(number);
  if (end == nullptr || end->reduction == nullptr) return;
  if (end->status < 0 && !std::exchange(end->is_flushed, true))
    end->reduction->end_stop(end->place(), random_);
  while (end != nullptr && !end->gathers.empty()) {
    const auto bytes = end->reduction->take_completion(end->place());
    if (!bytes && end->status >= 0) return;
    mcast_op_t* const op = end->gathers.front();
    end->gathers.pop_front();
    FabricCalls::complete(op, bytes ? MCAST_OK : MCAST_ERR_FABRIC, bytes.value_or(0), 0);
    end = find(number);
  }
}

}  // namespace cepheus::coll::fake

using cepheus::coll::fake::Counting;
using cepheus::coll::fake::FabricCalls;

extern "C" {

mcast_status_t mcast_gather(mcast_group_h group, const void* block, size_t block_length,
                            size_t offset, void* result, size_t length, mcast_op_t* op) {
  const Counting uncounted(false);
  if (!FabricCalls::knows(group)) return MCAST_ERR_INVALID;
  if (group->status != MCAST_OK) return group->status < 0 ? group->status : MCAST_ERR_INVALID;
  if (length > FabricCalls::fabric().reduction_bytes || offset + block_length > length)
    return MCAST_ERR_INVALID;
  if (group->gathers.size() >= 2) return MCAST_ERR_AGAIN;
  std::vector<std::byte> data(length);
  if (block_length > 0) std::memcpy(data.data() + offset, block, block_length);
  group->gathers.push_back(op);
  group->reduction->contribute(group->place(),
                               {std::move(data), static_cast<std::byte*>(result), false});
  return MCAST_INPROGRESS;
}
mcast_status_t mcast_reduce(mcast_group_h group, const void* contribution, mcast_mem_h,
                            void* result, mcast_mem_h, size_t count, mcast_reduction_t operation,
                            mcast_type_t type, mcast_op_t* op) {
  const Counting uncounted(false);
  const auto combiner = cepheus::arithmetic::Combiner::find(static_cast<std::uint8_t>(operation),
                                                            static_cast<std::uint8_t>(type));
  if (!FabricCalls::knows(group) || !combiner) return MCAST_ERR_INVALID;
  if (group->status != MCAST_OK) return group->status < 0 ? group->status : MCAST_ERR_INVALID;
  const std::size_t length = count * combiner->size();
  const bool has_sums = group->params.floating_sums != 0;
  if ((combiner->depends_on_pairs() && !has_sums) || length > FabricCalls::fabric().reduction_bytes)
    return MCAST_ERR_INVALID;
  if (group->gathers.size() >= 3) return MCAST_ERR_AGAIN;
  const auto* const bytes = static_cast<const std::byte*>(contribution);
  group->gathers.push_back(op);
  group->reduction->contribute(
      group->place(), {{bytes, bytes + length}, static_cast<std::byte*>(result), false, combiner});
  return MCAST_INPROGRESS;
}
mcast_status_t mcast_barrier(mcast_group_h group, mcast_op_t* op) {
  return mcast_gather(group, nullptr, 0, 0, nullptr, 0, op);
}

}  // extern "C"
