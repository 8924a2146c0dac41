// <mcast/mcast.h> and its small neighbours: checks arguments, takes the context's lock, turns
// outcomes into statuses; lets no exception through. Each failure also sets mcast_last_error(). An
// eager send copies or packs into a send buffer of the lane; without a free one it returns
// MCAST_ERR_AGAIN. In the child of a fork() contexts and memory are forgotten, not destroyed.
#include <mcast/recovery.h>
#include <mcast/senders.h>
#include <mcast/verbs.h>
#include <mcast/wait.h>

#include <array>
#include <cstring>

#include "libmcast/api.h"
#include "libmcast/forks.h"
#include "libmcast/parameters.h"

using namespace cepheus::mcast;

namespace {

mcast_context_attr_t attributes_of(const Context& context) {
  const Device& device = context.device();
  mcast_context_attr_t out MCAST_CONTEXT_ATTR_INIT;
  device.name().copy(out.device, sizeof out.device - 1);
  device.why().copy(out.device_why, sizeof out.device_why - 1);
  out.ipv4 = device.ipv4().value();
  out.gid_index = device.gid_index();
  out.path_mtu = device.path_mtu();
  out.max_message = device.max_message();
  out.is_up = device.is_up() ? 1 : 0;
  out.registered_bytes = device.registered_bytes();
  out.traffic_class = device.marks().traffic_class;
  out.service_level = device.marks().service_level;
  out.flow_label = device.marks().flow_label;
  out.ack_timeout = context.timing().timers().ack_timeout;
  out.progress_timeout_ms = static_cast<uint32_t>(
      std::chrono::ceil<std::chrono::milliseconds>(context.sender_time_limit()).count());
  context.contradiction().copy(out.contradiction, sizeof out.contradiction - 1);
  return out;
}

mcast_status_t check_eager(Group& group, EagerLane* lane) {
  if (lane == nullptr) return wrong_lane(group, "an eager send");
  if (const auto may_send = group.check_may_send(lane->max_message(), Group::Sending::kEager);
      !may_send) {
    return set_last_error(may_send.error());
  }
  if (!lane->can_send()) {
    return set_last_error(MCAST_ERR_AGAIN,
                          "send_depth messages are unacknowledged: call mcast_progress()");
  }
  return MCAST_OK;
}

mcast_status_t post_eager(Group& group, std::uint32_t slot, std::size_t length, std::uint32_t imm) {
  if (group.eager()->post(slot, length, imm)) {
    group.note_sent(length);
    return MCAST_OK;
  }
  group.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK,
             "the device refused a send; set up again with fresh groups");
  return set_last_error(MCAST_ERR_FABRIC, group.reason());
}

}  // namespace

const char* mcast_status_string(mcast_status_t status) {
  // From MCAST_INPROGRESS down.
  static constexpr std::array kTexts = {"in progress",
                                        "ok",
                                        "invalid argument or state",
                                        "no space now, try again",
                                        "no device that can serve",
                                        "out of memory",
                                        "registration refused",
                                        "registration timed out",
                                        "group belongs to another leader",
                                        "fabric failed",
                                        "canceled"};
  static_assert(kTexts.size() == MCAST_INPROGRESS - MCAST_ERR_CANCELED + 1);
  const auto place = static_cast<std::size_t>(MCAST_INPROGRESS - status);
  return place < kTexts.size() ? kTexts[place] : "unknown status";
}

const char* mcast_last_error(void) { return last_error(); }
const char* mcast_version_string(void) { return CEPHEUS_VERSION; }

mcast_status_t mcast_context_create(const mcast_context_params_t* params, mcast_context_h* out) {
  if (out == nullptr) return invalid("out is null");
  *out = nullptr;
  return guarded([&] {
    const auto config = context_config(params);
    if (!config) return set_last_error(config.error());
    auto context = Context::create(*config);
    if (context) *out = handle(context->release());
    return status_of(context);
  });
}

void mcast_context_destroy(mcast_context_h context) {
  if (context == nullptr) return;
  guarded([&] {
    // In the child of a fork it belongs to the parent: it is forgotten, not taken down.
    if (from(context)->is_ours()) delete from(context);
  });
}

mcast_status_t mcast_context_query(mcast_context_h context, mcast_context_attr_t* out) {
  if (const auto status = check_output(out); status != MCAST_OK) return status;
  return with(from(context), [&](Context& c) { write_sized(attributes_of(c), *out); });
}

unsigned mcast_progress(mcast_context_h context) {
  unsigned done = 0;
  with(from(context), [&](Context& c) { done = c.progress(); });
  return done;
}

unsigned mcast_progress_all(mcast_context_h context) {
  unsigned done = 0;
  with(from(context), [&](Context& c) { done = c.progress_all(); });
  return done;
}

mcast_status_t mcast_context_verbs(mcast_context_h context, mcast_verbs_t* out) {
  if (const auto status = check_output(out); status != MCAST_OK) return status;
  return with(from(context), [&](Context& c) {
    const Device& device = c.device();
    write_sized<mcast_verbs_t>({sizeof(mcast_verbs_t), device.context(), device.pd(), device.port(),
                                c.stores_in_process() ? 1 : 0},
                               *out);
  });
}

mcast_status_t mcast_context_arm(mcast_context_h context, int* fd) {
  if (fd == nullptr) return invalid("fd is null");
  *fd = -1;
  return with(from(context), [&](Context& c) {
    auto armed = c.arm();
    if (!armed) return set_last_error(armed.error());
    *fd = *armed;
    return MCAST_OK;
  });
}

mcast_status_t mcast_group_create(mcast_context_h context, const mcast_group_params_t* params,
                                  mcast_group_h* out) {
  if (out == nullptr) return invalid("out is null");
  *out = nullptr;
  return with(from(context), [&](Context& c) {
    const auto config = group_config(params, c.device());
    if (!config) return set_last_error(config.error());
    const auto group = c.create_group(*config);
    if (group) *out = handle(*group);
    return status_of(group);
  });
}

mcast_status_t mcast_group_set_recv(mcast_group_h group, mcast_recv_cb_t recv_cb, void* recv_arg) {
  if (group == nullptr) return invalid("the group is null");
  return with(&from(group)->context(), [&](Context& c) {
    return status_of(c.set_receive(*from(group), recv_cb, recv_arg));
  });
}

mcast_status_t mcast_group_member(mcast_group_h group, mcast_member_t* out) {
  if (out == nullptr) return invalid("out is null");
  return with(from(group), [&](Group& g) { *out = member_of(g.member()); });
}

mcast_status_t mcast_group_lead(mcast_group_h group, const mcast_member_t* members, size_t count) {
  return mcast_group_lead_regions(group, members, count, nullptr, 0);
}

mcast_status_t mcast_group_test(mcast_group_h group) {
  return with(from(group), [&](Group& g) {
    const mcast_status_t status = g.status();
    return status < 0 ? set_last_error(status, g.reason()) : status;
  });
}

mcast_status_t mcast_group_query(mcast_group_h group, mcast_group_attr_t* out) {
  if (const auto status = check_output(out); status != MCAST_OK) return status;
  return with(from(group), [&](Group& g) { write_sized(g.attributes(), *out); });
}

mcast_context_h mcast_group_context(mcast_group_h group) {
  return group == nullptr ? nullptr : handle(&from(group)->context());
}

void mcast_group_destroy(mcast_group_h group) {
  if (group == nullptr) return;
  with(&from(group)->context(), [&](Context& c) { c.destroy_group(*from(group)); });
}

unsigned mcast_group_outstanding(mcast_group_h group) {
  unsigned outstanding = 0;
  with(from(group), [&](Group& g) { outstanding = g.work().flow().sends_outstanding; });
  return outstanding;
}

mcast_status_t mcast_group_stop(mcast_group_h group, const char* reason) {
  return with(from(group), [&](Group& g) {
    g.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_STOPPED, reason != nullptr ? reason : "stopped");
  });
}

mcast_status_t mcast_group_set_watchdog(mcast_group_h group, int on) {
  return with(from(group), [&](Group& g) { g.set_watched(on != 0); });
}

mcast_status_t mcast_group_unacknowledged(mcast_group_h group, unsigned index, const void** data,
                                          size_t* length, uint32_t* imm) {
  if (data == nullptr || length == nullptr || imm == nullptr) return invalid("an output is null");
  return with(from(group), [&](Group& g) {
    const EagerLane* const lane = g.eager();
    if (lane == nullptr) return invalid("only an eager lane keeps its messages");
    if (g.state() != MCAST_GROUP_FAILED) return invalid("the group has not failed");
    if (index >= lane->unacknowledged()) return invalid("there is no send of this index");
    const EagerLane::Sent& sent = lane->sent(index);
    *data = lane->send_buffer(sent.slot);
    *length = sent.length;
    *imm = sent.imm;
    return MCAST_OK;
  });
}

mcast_status_t mcast_send_eager(mcast_group_h group, const void* data, size_t length,
                                uint32_t imm) {
  if (data == nullptr && length > 0) return invalid("data is null");
  return with(from(group), [&](Group& g) {
    EagerLane* const lane = g.eager();
    if (const mcast_status_t status = check_eager(g, lane); status != MCAST_OK) return status;
    if (length > lane->max_message()) {
      return invalid("the message is longer than max_eager: send it on a bulk lane");
    }
    const std::uint32_t slot = lane->take_send_buffer();
    if (length > 0) std::memcpy(lane->send_buffer(slot), data, length);
    return post_eager(g, slot, length, imm);
  });
}

mcast_status_t mcast_send_eager_pack(mcast_group_h group, mcast_pack_cb_t pack, void* arg,
                                     uint32_t imm, size_t* length_out) {
  if (pack == nullptr) return invalid("pack is null");
  return with(from(group), [&](Group& g) {
    EagerLane* const lane = g.eager();
    if (const mcast_status_t status = check_eager(g, lane); status != MCAST_OK) return status;
    const std::uint32_t slot = lane->take_send_buffer();
    const size_t length = pack(lane->send_buffer(slot), arg);
    if (length > lane->max_message()) {
      lane->give_back_send_buffer(slot);
      return invalid("pack wrote more than max_eager bytes: memory is corrupt");
    }
    if (length_out != nullptr) *length_out = length;
    return post_eager(g, slot, length, imm);
  });
}

void mcast_recv_release(mcast_group_h group, void* data) {
  with(from(group), [&](Group& g) {
    if (g.eager() != nullptr && g.release_receive(g.eager()->slot_of(data))) return MCAST_OK;
    return invalid("the buffer is not one that a receive callback of this group kept");
  });
}

mcast_status_t mcast_mem_register(mcast_context_h context, void* address, size_t length,
                                  mcast_mem_h* out) {
  return register_memory(context, address, length, 0, out);
}

struct ibv_mr* mcast_mem_verbs(mcast_mem_h mem) {
  return mem == nullptr ? nullptr : from(mem)->verbs();
}

void mcast_mem_deregister(mcast_mem_h mem) {
  if (mem == nullptr) return;
  guarded([&] {
    // In the child of a fork it is still the parent's.
    const bool ours = from(mem)->fork_generation() == current_fork_generation();
    if (ours) delete from(mem);
  });
}

mcast_status_t mcast_send(mcast_group_h group, const void* data, size_t length, mcast_mem_h mem,
                          uint32_t imm, mcast_op_t* op) {
  return start_sending(
      group, Group::Sending::kWhole, data, length, mem, op,
      [&](Group&, BulkLane& lane, Buffer& buffer) { return lane.send(buffer, imm, op); });
}

mcast_status_t mcast_recv(mcast_group_h group, void* buffer, size_t length, mcast_mem_h mem,
                          mcast_op_t* op) {
  Buffer memory(buffer, length, from(mem), IBV_ACCESS_LOCAL_WRITE);
  return start_bulk(group, memory, [&](Group& g) {
    BulkLane* lane = nullptr;
    if (const auto status = check_bulk(g, buffer, length, op, lane); status != MCAST_OK) {
      return status;
    }
    if (g.state() == MCAST_GROUP_FAILED) return set_last_error(g.status(), g.reason());
    return posted_status(g, lane->receive(memory, op));
  });
}
