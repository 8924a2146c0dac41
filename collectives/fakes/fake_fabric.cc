#include "collectives/fakes/fake_fabric.h"

#include <algorithm>
#include <cstring>

#include "collectives/fakes/allocations.h"
#include "collectives/fakes/fabric_calls.h"
#include "collectives/units/bulk_operation.h"

namespace cepheus::coll::fake {

namespace {

Fabric* running_fabric = nullptr;

// The unit of a message with these bytes. A small one has no operation.
std::uint64_t unit_of(std::uint32_t imm, const mcast_op_t* op, const std::byte* bytes) {
  std::uint64_t unit = imm >> BulkOperation::kPieceBits;
  if (op == nullptr) std::memcpy(&unit, bytes, sizeof unit);  // EagerHeader's
  return unit;
}

}  // namespace

Fabric& FabricCalls::fabric() { return *running_fabric; }

Fabric::Fabric() { running_fabric = this; }
Fabric::~Fabric() { running_fabric = nullptr; }

mcast_group* Fabric::find(std::uint32_t end) const {
  const auto at =
      std::ranges::find_if(groups_, [&](const auto& each) { return each->number == end; });
  return at == groups_.end() ? nullptr : at->get();
}

bool Fabric::knows(mcast_group_h group) {
  const bool is_there =
      std::ranges::any_of(groups_, [&](const auto& each) { return each.get() == group; });
  if (!is_there) ++misuses_;
  return is_there;
}

std::vector<std::uint32_t> Fabric::all_ends() const {
  std::vector<std::uint32_t> all;
  for (const auto& each : groups_) all.push_back(each->number);
  return all;
}

std::vector<std::uint32_t> Fabric::ends() const {
  std::vector<std::uint32_t> all;
  for (const auto& each : groups_) {
    if (each->status == MCAST_OK) all.push_back(each->number);
  }
  return all;
}

// The oldest message that this end lacks, from any sender: all members receive them in one order.
const mcast_group::Send* Fabric::next_for(const mcast_group& end, mcast_group** from) const {
  const mcast_group::Send* oldest = nullptr;
  for (const auto& group : groups_) {
    if (group->wire != end.wire || group->status != MCAST_OK) continue;
    for (const auto& send : group->sends) {
      const bool is_older = oldest == nullptr || send.serial < oldest->serial;
      if (!send.lacking.contains(end.number) || !is_older) continue;
      oldest = &send;
      *from = group.get();
    }
  }
  return oldest;
}

std::vector<std::uint32_t> Fabric::deliverable() const {
  std::vector<std::uint32_t> found;
  for (const auto& group : groups_) {
    if (group->status < 0 || group->wire == 0 || is_disconnected(group->member)) continue;
    if (ended_.contains(group->wire)) continue;
    mcast_group* from = nullptr;
    const auto* send = next_for(*group, &from);
    if (send == nullptr || is_disconnected(from->member)) continue;
    if (send->op == nullptr || !group->receives.empty()) found.push_back(group->number);
  }
  return found;
}

std::vector<std::uint32_t> Fabric::answered_rnr() const {
  std::vector<std::uint32_t> found;
  for (const auto& group : groups_) {
    mcast_group* from = nullptr;
    const auto* send = group->status == MCAST_OK ? next_for(*group, &from) : nullptr;
    if (send != nullptr && send->op != nullptr && group->receives.empty()) {
      found.push_back(from->number);
    }
  }
  return found;
}

void Fabric::deliver(std::uint32_t end) {
  mcast_group& group = *find(end);
  mcast_group* from = nullptr;
  auto& send = const_cast<mcast_group::Send&>(*next_for(group, &from));
  send.lacking.erase(end);
  const auto* bytes = static_cast<const std::byte*>(send.memory);
  const std::uint64_t unit = unit_of(send.imm, send.op, bytes);
  if (send.lacking.empty()) ++acknowledged_[unit];
  if (group.is_deaf) {
    lost_.emplace(group.member, unit);
    return;
  }
  if (group.is_mute) lost_.emplace(group.member, unit);
  mcast_group::Arrived arrived{{bytes, bytes + send.size}, nullptr, send.imm};
  if (send.op != nullptr) {
    const auto receive = group.receives.front();
    group.receives.pop_front();
    std::memcpy(receive.memory, bytes, std::min(send.size, receive.size));
    arrived.op = receive.op;
  }
  group.arrived.push_back(std::move(arrived));
}

void Fabric::deafen(std::uint32_t end) {
  mcast_group& group = *find(end);
  group.is_deaf = true;
  if (group.reduction != nullptr) group.reduction->deafen(group.place());
}

void Fabric::mute(std::uint32_t end) {
  mcast_group& group = *find(end);
  group.is_mute = true;
  if (group.reduction != nullptr && !group.gathers.empty()) lost_.emplace(group.member, kReduced);
  for (const auto& each : group.arrived)
    lost_.emplace(group.member, unit_of(each.imm, each.op, each.data.data()));
}

std::vector<std::uint32_t> Fabric::registering() const {
  std::vector<std::uint32_t> found;
  for (const auto& each : groups_) {
    if (!each->members.empty() && each->status == MCAST_INPROGRESS) found.push_back(each->number);
  }
  return found;
}

void Fabric::conclude(std::uint32_t end) {
  mcast_group& leader = *find(end);
  ++registrations_;
  const mcast_status_t outcome = is_whole() ? outcomes.front() : MCAST_ERR_TIMED_OUT;
  if (outcomes.size() > 1) outcomes.pop_front();
  const bool has_no_memory = refuses_sums && leader.params.floating_sums != 0;
  if (outcome != MCAST_OK || has_no_memory) {
    leader.status = outcome != MCAST_OK ? outcome : MCAST_ERR_REJECTED;
    leader.cause = MCAST_CAUSE_REGISTRATION;
    leader.reason = "refused by the test";
    return;
  }
  leader.wire = end;
  for (const std::uint32_t number : leader.members) {
    mcast_group* const member = find(number);
    if (member == nullptr || member->status != MCAST_INPROGRESS) continue;
    member->members = leader.members;
    member->wire = end;
    member->status = MCAST_OK;
  }
  if (leader.params.lane == MCAST_LANE_REDUCTION) begin_reductions(leader);
}

// The next source waits for the old one's packets.
void Fabric::note_end_of(const mcast_group& end) {
  for (const auto& send : end.sends) {
    if (!send.lacking.empty()) ended_.insert(end.wire);
  }
}

void Fabric::fail(std::uint32_t end, mcast_cause_t cause, const std::string& why) {
  mcast_group& group = *find(end);
  if (group.status < 0) return;
  note_end_of(group);
  if (group.reduction != nullptr) group.reduction->fail(group.place(), true);
  group.status = MCAST_ERR_FABRIC;
  group.cause = cause;
  group.reason = why;
}

std::vector<std::uint32_t> Fabric::stalled() const {
  std::vector<std::uint32_t> found;
  for (const auto& each : groups_) {
    const bool waits = std::ranges::any_of(
        each->sends, [&](const auto& send) { return each->is_mute || !send.lacking.empty(); });
    if (each->status != MCAST_OK || !each->is_watched) continue;
    if (waits || is_stalled(*each)) found.push_back(each->number);
  }
  return found;
}

std::size_t Fabric::lost_for_good(int rank) const {
  return static_cast<std::size_t>(std::ranges::count_if(lost_, [&](const auto& lost) {
    return lost.first == rank && acknowledged(lost.second) > 0;
  }));
}

bool Fabric::uses(const std::vector<std::byte>& memory) const {
  const auto is_inside = [&](const void* at) {
    const auto* const byte = static_cast<const std::byte*>(at);
    return byte >= memory.data() && byte < memory.data() + memory.size();
  };
  return std::ranges::any_of(groups_, [&](const auto& group) {
    return std::ranges::any_of(group->receives,
                               [&](const auto& each) { return is_inside(each.memory); }) ||
           std::ranges::any_of(group->sends, [&](const auto& each) {
             return each.op != nullptr && is_inside(each.memory);
           });
  });
}

void Fabric::progress(int rank) {
  std::vector<std::uint32_t> own;
  for (const auto& each : groups_) {
    if (each->member == rank && !each->is_mute) own.push_back(each->number);
  }
  for (const std::uint32_t number : own) {
    progress_reductions(number);
    mcast_group* group = find(number);
    while (group != nullptr && !group->arrived.empty()) {
      auto arrived = std::move(group->arrived.front());
      group->arrived.pop_front();
      if (arrived.op != nullptr) {
        FabricCalls::complete(arrived.op, MCAST_OK, arrived.data.size(), arrived.imm);
      } else {
        group->lent.push_back(std::make_unique<std::vector<std::byte>>(std::move(arrived.data)));
        auto& data = *group->lent.back();
        const Counting counted(true);
        (void)group->params.recv_cb(group->params.recv_arg, data.data(), data.size(), arrived.imm);
      }
      group = find(number);
    }
    while (group != nullptr && !group->sends.empty()) {
      const bool is_acknowledged = group->sends.front().lacking.empty();
      const bool is_flushed = group->status < 0 && group->sends.front().op != nullptr;
      if (!is_acknowledged && !is_flushed) break;
      mcast_op_t* const op = group->sends.front().op;
      group->sends.pop_front();
      if (op != nullptr)
        FabricCalls::complete(op, is_acknowledged ? MCAST_OK : MCAST_ERR_FABRIC, 0, 0);
      group = find(number);
    }
    while (group != nullptr && group->status < 0 && !group->receives.empty()) {
      mcast_op_t* const op = group->receives.front().op;
      group->receives.pop_front();
      FabricCalls::complete(op, MCAST_ERR_FABRIC, 0, 0);
      group = find(number);
    }
  }
}

}  // namespace cepheus::coll::fake
