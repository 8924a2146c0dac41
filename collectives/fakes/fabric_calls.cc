// libmcast's functions, over the running Fabric. Posted work stays in its group until the test
// delivers it; bounds are those of the group's parameters. fake_reductions.cc has the functions of
// reductions.
#include "collectives/fakes/fabric_calls.h"

#include <arpa/inet.h>
#include <mcast/recovery.h>

#include <utility>

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
  *out = {htonl(FabricCalls::fabric().address_of(group->member)), group->number, 1, 0, 0};
  return MCAST_OK;
}
mcast_status_t mcast_group_lead(mcast_group_h group, const mcast_member_t* members, size_t count) {
  FabricCalls::fabric().on_lead();
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
  out->members = static_cast<std::uint32_t>(group->members.size());
  if (group->status == MCAST_ERR_TIMED_OUT && !FabricCalls::fabric().answers_in_part)
    out->members_missing = out->members - 1;
  out->portion = FabricCalls::fabric().portion;
  out->max_message = FabricCalls::fabric().reduction_bytes;
  out->is_flat = FabricCalls::fabric().is_flat ? 1 : 0;
  out->is_ascending = FabricCalls::fabric().has_ascending_addresses ? 1 : 0;
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
