#include "collectives/fakes/fake_fabric.h"

#include <mcast/recovery.h>

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
  const mcast_status_t outcome = is_whole() ? outcomes.front() : MCAST_ERR_TIMED_OUT;
  if (outcomes.size() > 1) outcomes.pop_front();
  if (outcome != MCAST_OK) {
    leader.status = outcome;
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

using cepheus::coll::fake::Counting;
using cepheus::coll::fake::FabricCalls;

namespace {

mcast_status_t post(mcast_group_h group, mcast_group::Send send) {
  const Counting uncounted(false);
  if (!FabricCalls::knows(group)) return MCAST_ERR_INVALID;
  if (group->status != MCAST_OK) return group->status < 0 ? group->status : MCAST_ERR_INVALID;
  if (group->sends.size() >= group->params.send_depth) return MCAST_ERR_AGAIN;
  send.serial = FabricCalls::next_serial();
  // An end that has gone acknowledges nothing.
  send.lacking = {group->members.begin(), group->members.end()};
  send.lacking.erase(group->number);
  group->sends.push_back(std::move(send));
  auto& kept = group->sends.back();
  if (kept.op == nullptr) kept.memory = kept.copy.data();
  return kept.op == nullptr ? MCAST_OK : MCAST_INPROGRESS;
}

}  // namespace

extern "C" {

const char* mcast_last_error(void) { return "the test says so"; }
mcast_status_t mcast_context_create(const mcast_context_params_t* params, mcast_context_h* out) {
  FabricCalls::fabric().context_params = *params;
  *out = reinterpret_cast<mcast_context_h>(1);
  return FabricCalls::fabric().on_open();
}
void mcast_context_destroy(mcast_context_h) {}
mcast_status_t mcast_context_query(mcast_context_h, mcast_context_attr_t* out) {
  *out = mcast_context_attr_t MCAST_CONTEXT_ATTR_INIT;
  out->ipv4 = static_cast<std::uint32_t>(FabricCalls::fabric().caller) + 1;
  out->is_up = FabricCalls::fabric().is_port_up ? 1 : 0;
  return MCAST_OK;
}
unsigned mcast_progress(mcast_context_h) { return 0; }

mcast_status_t mcast_group_create(mcast_context_h, const mcast_group_params_t* params,
                                  mcast_group_h* out) {
  auto& groups = FabricCalls::groups();
  groups.push_back(std::make_unique<mcast_group>());
  *out = groups.back().get();
  (*out)->member = FabricCalls::fabric().caller;
  (*out)->number = FabricCalls::next_number();
  (*out)->params = *params;
  if (params->send_depth == 0) (*out)->params.send_depth = 64;
  return MCAST_OK;
}
mcast_status_t mcast_group_set_recv(mcast_group_h group, mcast_recv_cb_t callback, void* arg) {
  group->params.recv_cb = callback;
  group->params.recv_arg = arg;
  return MCAST_OK;
}
mcast_status_t mcast_group_member(mcast_group_h group, mcast_member_t* out) {
  *out = {group->number, group->number, 1, 0, 0};
  return MCAST_OK;
}
mcast_status_t mcast_group_lead(mcast_group_h group, const mcast_member_t* members, size_t count) {
  for (size_t i = 0; i < count; ++i) group->members.push_back(members[i].qpn);
  return MCAST_OK;
}
mcast_status_t mcast_group_test(mcast_group_h group) {
  return FabricCalls::knows(group) ? group->status : MCAST_ERR_INVALID;
}
mcast_status_t mcast_group_query(mcast_group_h group, mcast_group_attr_t* out) {
  const Counting uncounted(false);
  if (!FabricCalls::knows(group)) return MCAST_ERR_INVALID;
  *out = mcast_group_attr_t MCAST_GROUP_ATTR_INIT;
  out->state = group->status < 0 ? MCAST_GROUP_FAILED : MCAST_GROUP_ACTIVE;
  out->status = group->status;
  out->cause = group->cause;
  group->reason.copy(out->reason, sizeof out->reason - 1);
  out->portion = FabricCalls::fabric().portion;
  out->max_message = FabricCalls::fabric().reduction_bytes;
  out->recvs_posted = static_cast<unsigned>(group->receives.size() + group->arrived.size());
  for (const auto& send : group->sends) out->sends_outstanding += send.op != nullptr ? 1 : 0;
  return MCAST_OK;
}
void mcast_group_destroy(mcast_group_h group) {
  auto& groups = FabricCalls::groups();
  if (!FabricCalls::knows(group)) return;
  if (!group->lent.empty()) FabricCalls::note_misuse();
  std::vector<mcast_op_t*> cancelled;
  for (const auto& each : group->receives) cancelled.push_back(each.op);
  for (const auto& each : group->sends) {
    if (each.op != nullptr) cancelled.push_back(each.op);
  }
  for (const auto& each : group->arrived) {
    if (each.op != nullptr) cancelled.push_back(each.op);
  }
  for (mcast_op_t* const op : group->gathers) cancelled.push_back(op);
  if (group->reduction != nullptr) group->reduction->fail(group->place(), false);
  FabricCalls::note_end_of(*group);
  std::erase_if(groups, [&](const auto& each) { return each.get() == group; });
  for (mcast_op_t* const op : cancelled) op->done(op, MCAST_ERR_CANCELED, 0, 0);
}
unsigned mcast_group_outstanding(mcast_group_h group) {
  return FabricCalls::knows(group) ? static_cast<unsigned>(group->sends.size()) : 0;
}
mcast_status_t mcast_group_stop(mcast_group_h group, const char* reason) {
  if (!FabricCalls::knows(group)) return MCAST_ERR_INVALID;
  FabricCalls::fabric().fail(group->number, MCAST_CAUSE_STOPPED, reason);
  return MCAST_OK;
}
mcast_status_t mcast_group_set_watchdog(mcast_group_h group, int on) {
  group->is_watched = on != 0;
  return MCAST_OK;
}
mcast_status_t mcast_group_unacknowledged(mcast_group_h group, unsigned index, const void** data,
                                          size_t* length, uint32_t* imm) {
  if (index >= group->sends.size()) return MCAST_ERR_INVALID;
  const auto& send = group->sends[index];
  *data = send.memory;
  *length = send.size;
  *imm = send.imm;
  return MCAST_OK;
}
mcast_status_t mcast_send_eager_pack(mcast_group_h group, mcast_pack_cb_t pack, void* arg,
                                     uint32_t imm, size_t* length) {
  if (!FabricCalls::knows(group)) return MCAST_ERR_INVALID;
  if (group->status < 0) return group->status;
  if (group->sends.size() >= group->params.send_depth) return MCAST_ERR_AGAIN;
  const Counting uncounted(false);
  std::vector<std::byte> copy(group->params.max_eager);
  *length = pack(copy.data(), arg);
  if (*length > copy.size()) return MCAST_ERR_INVALID;
  const size_t size = *length;
  copy.resize(size);
  return post(group, {0, std::move(copy), nullptr, size, imm, nullptr, {}});
}
void mcast_recv_release(mcast_group_h group, void* data) {
  if (!FabricCalls::knows(group)) return;
  std::erase_if(group->lent, [&](const auto& each) { return each->data() == data; });
}
mcast_status_t mcast_send(mcast_group_h group, const void* data, size_t length, mcast_mem_h,
                          uint32_t imm, mcast_op_t* op) {
  // Two portions fill the window.
  const size_t portion = FabricCalls::fabric().portion;
  if (portion != 0 && length > portion) return MCAST_ERR_INVALID;
  if (portion != 0 && FabricCalls::knows(group) && group->sends.size() >= 2) return MCAST_ERR_AGAIN;
  return post(group, {0, {}, data, length, imm, op, {}});
}
mcast_status_t mcast_recv(mcast_group_h group, void* memory, size_t size, mcast_mem_h,
                          mcast_op_t* op) {
  if (!FabricCalls::knows(group)) return MCAST_ERR_INVALID;
  if (group->status < 0) return group->status;
  if (group->receives.size() >= group->params.recv_depth) return MCAST_ERR_AGAIN;
  const Counting uncounted(false);
  group->receives.push_back({memory, size, op});
  return MCAST_INPROGRESS;
}

}  // extern "C"
