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
  if (end.reduction == nullptr || end.reducing.empty()) return false;
  if (end.is_mute) return true;
  return std::ranges::any_of(end.members, [&](std::uint32_t number) {
    const mcast_group* const other = find(number);
    return other == nullptr || !may_move(*other);
  });
}

// The next units, as the window admits them.
void Fabric::contribute_due(mcast_group& end) const {
  for (mcast_group::Reducing& each : end.reducing) {
    for (; each.units > 0 && end.units_under_way < reduction_window; --each.units) {
      const std::size_t most = each.combiner ? packet_bytes() : each.length;
      const std::size_t bytes = std::min(most, each.length - each.contributed);
      std::byte* result = each.result + each.contributed;
      if (each.is_in_place()) result = each.arrivals.emplace_back(bytes).data();
      const std::byte* const values = each.values + each.contributed;
      end.reduction->contribute(end.place(),
                                {{values, values + bytes}, result, false, each.combiner});
      each.contributed += bytes;
      ++end.units_under_way;
    }
    if (each.units > 0) return;
  }
}

void Fabric::take_result(mcast_group& end, std::size_t bytes) {
  mcast_group::Reducing& oldest = end.reducing.front();
  if (oldest.is_in_place()) {
    std::ranges::copy(oldest.arrivals.front(), oldest.result + oldest.final_length);
    oldest.arrivals.pop_front();
  }
  oldest.final_length += bytes;
  end.bytes_received += bytes;
  --end.units_under_way;
}

void Fabric::progress_reductions(std::uint32_t number) {
  mcast_group* end = find(number);
  if (end == nullptr || end->reduction == nullptr) return;
  if (end->status < 0 && !std::exchange(end->is_flushed, true))
    end->reduction->end_stop(end->place(), random_);
  while (end != nullptr && !end->reducing.empty()) {
    const auto bytes = end->reduction->take_completion(end->place());
    if (!bytes && end->status >= 0) return;
    if (bytes) take_result(*end, *bytes);
    const mcast_group::Reducing oldest = end->reducing.front();
    if (bytes && oldest.final_length < oldest.length) {
      if (end->status >= 0) contribute_due(*end);
      continue;
    }
    end->reducing.pop_front();
    FabricCalls::complete(oldest.op, bytes ? MCAST_OK : MCAST_ERR_FABRIC, oldest.final_length, 0);
    end = find(number);
  }
}

}  // namespace cepheus::coll::fake

using cepheus::coll::fake::Counting;
using cepheus::coll::fake::FabricCalls;

namespace {

mcast_status_t start(mcast_group_h group, mcast_group::Reducing reducing) {
  group->reducing.push_back(std::move(reducing));
  FabricCalls::contribute_due(*group);
  return MCAST_INPROGRESS;
}

}  // namespace

extern "C" {

mcast_status_t mcast_gather(mcast_group_h group, const void* block, size_t block_length,
                            size_t offset, void* result, size_t length, mcast_op_t* op) {
  const Counting uncounted(false);
  if (!FabricCalls::knows(group)) return MCAST_ERR_INVALID;
  if (group->status != MCAST_OK) return group->status < 0 ? group->status : MCAST_ERR_INVALID;
  if (length > FabricCalls::fabric().reduction_bytes || offset + block_length > length)
    return MCAST_ERR_INVALID;
  const bool fits = group->units_under_way < FabricCalls::fabric().reduction_window;
  if (!fits || group->reducing.size() >= 2) return MCAST_ERR_AGAIN;
  std::vector<std::byte> data(length);
  if (block_length > 0) std::memcpy(data.data() + offset, block, block_length);
  return start(group, {op, {}, data.data(), static_cast<std::byte*>(result), length, 1});
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
  const auto& fabric = FabricCalls::fabric();
  const bool has_sums = group->params.floating_sums != 0;
  if ((combiner->depends_on_pairs() && !has_sums) || fabric.packet_bytes() % combiner->size() != 0)
    return MCAST_ERR_INVALID;
  const bool is_long = length > MCAST_REDUCTION_PACKETS * fabric.packet_bytes();
  if (is_long && fabric.without_memory == group->member) return MCAST_ERR_NO_MEMORY;
  if (group->reducing.size() >= 3) return MCAST_ERR_AGAIN;
  const std::size_t units = (length - 1) / fabric.packet_bytes() + 1;
  return start(group, {op, combiner, static_cast<const std::byte*>(contribution),
                       static_cast<std::byte*>(result), length, units});
}
mcast_status_t mcast_barrier(mcast_group_h group, mcast_op_t* op) {
  return mcast_gather(group, nullptr, 0, 0, nullptr, 0, op);
}

}  // extern "C"
