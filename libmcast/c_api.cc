// <mcast/mcast.h> but for reports: checks handles, takes the lock, turns outcomes into statuses; lets no exception
// through.
#include <arpa/inet.h>
#include <endian.h>

#include <cstring>

#include "libmcast/context.h"
#include "libmcast/failure.h"
#include "libmcast/guarded.h"
#include "libmcast/memory.h"
#include "libmcast/parameters.h"
#include "libmcast/process.h"
#include "wire/clock.h"

using namespace cepheus::mcast;
namespace mrp = cepheus::mrp;
namespace wire = cepheus::wire;

namespace {

constexpr const char* kForked = "it was opened before fork(): open one in this process";

Context* from(mcast_context_h h) { return reinterpret_cast<Context*>(h); }
Group* from(mcast_group_h h) { return reinterpret_cast<Group*>(h); }
Memory* from(mcast_mem_h h) { return reinterpret_cast<Memory*>(h); }
mcast_context_h handle(Context* c) { return reinterpret_cast<mcast_context_h>(c); }
mcast_group_h handle(Group* g) { return reinterpret_cast<mcast_group_h>(g); }
mcast_mem_h handle(Memory* m) { return reinterpret_cast<mcast_mem_h>(m); }

template <typename T>
mcast_status_t status_of(const Expected<T>& outcome) {
  return outcome ? MCAST_OK : set_last_error(outcome.error());
}

// Runs `body(context)` if the context may be used in this process.
template <typename Body>
mcast_status_t with(Context* context, Body&& body) noexcept {
  if (context == nullptr) return invalid("the context is null");
  if (!context->is_ours()) return invalid(kForked);
  return guarded([&] { return body(*context); });
}

// Runs `body(group)` under the state lock.
template <typename Body>
mcast_status_t with(Group* group, Body&& body) noexcept {
  if (group == nullptr) return invalid("the group is null");
  if (!group->context().is_ours()) return invalid(kForked);
  return guarded([&] {
    const auto locked = group->context().lock();
    return body(*group);
  });
}

mrp::MrpMember member_of(const mcast_member_t& m) {
  return {wire::Ipv4(ntohl(m.ipv4)), wire::Qpn(ntohl(m.qpn)), 0, ntohs(m.control_port),
          ntohl(m.token)};
}
mcast_member_t member_of(const mrp::MrpMember& m) {
  return {htonl(m.host.value()), htonl(m.qpn.value()), htons(m.control_port), 0, htonl(m.token)};
}

void describe(const Device& device, mcast_context_attr_t& out) {
  out = {};
  device.name().copy(out.device, sizeof out.device - 1);
  out.ipv4 = device.ipv4().value();
  out.gid_index = device.gid_index();
  out.path_mtu = device.path_mtu();
  out.max_message = device.max_message();
  out.is_up = device.is_up() ? 1 : 0;
  out.registered_bytes = registered_bytes.load(std::memory_order_relaxed);
}

mcast_status_t check_eager(Group& group, EagerLane* lane) {
  if (lane == nullptr) return invalid("an eager send on a bulk lane: use mcast_send()");
  if (const auto may_send = group.check_may_send(); !may_send) {
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
    group.note_sent();
    return MCAST_OK;
  }
  group.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK,
             "the device refused a send; set up again with fresh groups");
  return set_last_error(MCAST_ERR_FABRIC, group.reason());
}

// A bulk operation's arguments; the lane in `lane`.
mcast_status_t check_bulk(Group& group, const void* data, std::size_t length, const mcast_op_t* op,
                          BulkLane*& lane) {
  lane = group.bulk();
  if (lane == nullptr) return invalid("a bulk operation on an eager lane: use mcast_send_eager()");
  if (op == nullptr || op->done == nullptr) return invalid("a bulk operation needs op->done");
  if (data == nullptr && length > 0) return invalid("the buffer is null");
  return MCAST_OK;
}

mcast_status_t start_bulk(Group& group, const Expected<void>& posted) {
  if (posted) return MCAST_INPROGRESS;
  if (posted.error().status == MCAST_ERR_FABRIC) {
    group.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK, posted.error().text);
  }
  return set_last_error(posted.error());
}

// What starts on a bulk lane under the one rule for senders; `post` posts it there.
template <typename Post>
mcast_status_t start_sending(mcast_group_h group, const void* data, std::size_t length,
                             const mcast_op_t* op, Post post) {
  return with(from(group), [&](Group& g) {
    BulkLane* lane = nullptr;
    if (const auto status = check_bulk(g, data, length, op, lane); status != MCAST_OK) {
      return status;
    }
    if (const auto may_send = g.check_may_send(); !may_send) {
      return set_last_error(may_send.error());
    }
    const Expected<void> posted = post(g, *lane);
    if (posted) g.note_sent();
    return start_bulk(g, posted);
  });
}

}  // namespace

const char* mcast_status_string(mcast_status_t status) {
  switch (status) {
    case MCAST_OK:
      return "ok";
    case MCAST_INPROGRESS:
      return "in progress";
    case MCAST_ERR_INVALID:
      return "invalid argument or state";
    case MCAST_ERR_AGAIN:
      return "no room now";
    case MCAST_ERR_NO_DEVICE:
      return "no device that can serve";
    case MCAST_ERR_NO_MEMORY:
      return "out of memory";
    case MCAST_ERR_REJECTED:
      return "registration refused";
    case MCAST_ERR_TIMED_OUT:
      return "registration timed out";
    case MCAST_ERR_ID_IN_USE:
      return "group belongs to another leader";
    case MCAST_ERR_FABRIC:
      return "fabric failed";
    case MCAST_ERR_CANCELED:
      return "canceled";
  }
  return "unknown status";
}

const char* mcast_last_error(void) { return last_error(); }
const char* mcast_version_string(void) { return CEPHEUS_VERSION; }

mcast_status_t mcast_context_create(const mcast_context_params_t* params, mcast_context_h* out) {
  if (out == nullptr) return invalid("out is null");
  *out = nullptr;
  return guarded([&] {
    const auto config = context_config(params);
    if (!config) return set_last_error(config.error());
    const auto context = Process::instance().open(*config);
    if (context) *out = handle(*context);
    return status_of(context);
  });
}

void mcast_context_destroy(mcast_context_h context) {
  if (context == nullptr) return;
  guarded([&] {
    Process::instance().close(*from(context));
    return MCAST_OK;
  });
}

mcast_status_t mcast_context_query(mcast_context_h context, mcast_context_attr_t* out) {
  if (out == nullptr) return invalid("out is null");
  return with(from(context), [&](Context& c) {
    describe(c.device(), *out);
    return MCAST_OK;
  });
}

unsigned mcast_progress(mcast_context_h context) {
  unsigned done = 0;
  with(from(context), [&](Context& c) {
    done = c.progress();
    return MCAST_OK;
  });
  return done;
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
  return with(from(group), [&](Group& g) { return status_of(g.set_receive(recv_cb, recv_arg)); });
}

mcast_status_t mcast_group_member(mcast_group_h group, mcast_member_t* out) {
  if (out == nullptr) return invalid("out is null");
  return with(from(group), [&](Group& g) {
    *out = member_of(g.member());
    return MCAST_OK;
  });
}

mcast_status_t mcast_group_lead(mcast_group_h group, const mcast_member_t* members, size_t count) {
  if (group == nullptr) return invalid("the group is null");
  if (members == nullptr && count > 0) return invalid("members is null");
  return with(&from(group)->context(), [&](Context& c) {
    std::vector<mrp::MrpMember> list;
    list.reserve(count);
    for (size_t i = 0; i < count; ++i) list.push_back(member_of(members[i]));
    return status_of(c.lead(*from(group), list));
  });
}

mcast_status_t mcast_group_test(mcast_group_h group) {
  return with(from(group), [&](Group& g) {
    const mcast_status_t status = g.status();
    return status < 0 ? set_last_error(status, g.reason()) : status;
  });
}

mcast_status_t mcast_group_query(mcast_group_h group, mcast_group_attr_t* out) {
  if (out == nullptr) return invalid("out is null");
  return with(from(group), [&](Group& g) {
    g.describe(*out);
    return MCAST_OK;
  });
}

mcast_group_h mcast_group_by_id(uint32_t id) {
  Group* group = nullptr;
  guarded([&] {
    group = Process::instance().find_group(id);
    return MCAST_OK;
  });
  return handle(group);
}

mcast_context_h mcast_group_context(mcast_group_h group) {
  return group == nullptr ? nullptr : handle(&from(group)->context());
}

void mcast_group_destroy(mcast_group_h group) {
  if (group == nullptr) return;
  with(&from(group)->context(), [&](Context& c) {
    c.destroy_group(*from(group));
    return MCAST_OK;
  });
}

unsigned mcast_group_outstanding(mcast_group_h group) {
  unsigned outstanding = 0;
  with(from(group), [&](Group& g) {
    outstanding = g.lane().sends_outstanding();
    return MCAST_OK;
  });
  return outstanding;
}

mcast_status_t mcast_group_stop(mcast_group_h group, const char* reason) {
  return with(from(group), [&](Group& g) {
    g.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_STOPPED, reason != nullptr ? reason : "stopped");
    return MCAST_OK;
  });
}

mcast_status_t mcast_group_set_watchdog(mcast_group_h group, int on) {
  return with(from(group), [&](Group& g) {
    g.set_watched(on != 0);
    return MCAST_OK;
  });
}

mcast_status_t mcast_group_unacknowledged(mcast_group_h group, unsigned index, const void** data,
                                          size_t* length, uint32_t* imm) {
  if (data == nullptr || length == nullptr || imm == nullptr) return invalid("an output is null");
  return with(from(group), [&](Group& g) {
    const EagerLane* const lane = g.eager();
    if (lane == nullptr) return invalid("only an eager lane keeps what it sent");
    if (g.state() != MCAST_GROUP_FAILED) return invalid("the group has not failed");
    if (index >= lane->unacknowledged()) return invalid("there is no such send");
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
  if (out == nullptr) return invalid("out is null");
  *out = nullptr;
  if (address == nullptr || length == 0) return invalid("there is no memory to register");
  return with(from(context), [&](Context& c) {
    auto memory = Memory::create(c.device(), c.fork_generation(), address, length);
    if (memory) *out = handle(memory->release());
    return status_of(memory);
  });
}

void mcast_mem_deregister(mcast_mem_h mem) {
  if (mem == nullptr) return;
  guarded([&] {
    // In the child of a fork it is still the parent's.
    const bool ours = from(mem)->fork_generation() == Process::instance().fork_generation();
    if (ours) delete from(mem);
    return MCAST_OK;
  });
}

mcast_status_t mcast_send(mcast_group_h group, const void* data, size_t length, mcast_mem_h mem,
                          uint32_t imm, mcast_op_t* op) {
  return start_sending(group, data, length, op, [&](Group&, BulkLane& lane) {
    return lane.send(data, length, from(mem), imm, op);
  });
}

// --- WRITE.

mcast_status_t mcast_region_publish(mcast_group_h group, uint16_t region, void* address,
                                    size_t length) {
  if (address == nullptr || length == 0) return invalid("there is no memory to publish");
  return with(from(group), [&](Group& g) {
    return status_of(g.publish(wire::monotonic_now(), region, address, length));
  });
}

mcast_status_t mcast_region_revoke(mcast_group_h group, uint16_t region) {
  return with(from(group),
              [&](Group& g) { return status_of(g.revoke(wire::monotonic_now(), region)); });
}

mcast_status_t mcast_region_test(mcast_group_h group) {
  return with(from(group), [&](Group& g) {
    const mcast_status_t status = g.regions_status();
    return status < 0 ? set_last_error(status, g.reason()) : status;
  });
}

mcast_status_t mcast_write(mcast_group_h group, const void* data, size_t length, mcast_mem_h mem,
                           uint16_t region, uint64_t offset, const uint32_t* imm, mcast_op_t* op) {
  return start_sending(group, data, length, op, [&](Group& g, BulkLane& lane) {
    const auto with_imm = imm != nullptr ? std::optional(*imm) : std::nullopt;
    return lane.write(data, length, from(mem), g.place_in(region, offset), with_imm, op);
  });
}

mcast_status_t mcast_mem_register_writable(mcast_context_h context, void* address, size_t length,
                                           mcast_mem_h* out) {
  if (out == nullptr) return invalid("out is null");
  *out = nullptr;
  if (address == nullptr || length == 0) return invalid("there is no memory to register");
  return with(from(context), [&](Context& c) {
    auto memory = Memory::create_writable(c.device(), c.fork_generation(), address, length);
    if (memory) *out = handle(memory->release());
    return status_of(memory);
  });
}

mcast_status_t mcast_mem_target(mcast_mem_h mem, void* address, size_t length,
                                mcast_target_t* out) {
  if (mem == nullptr || out == nullptr) return invalid("the memory, or out, is null");
  return guarded([&] {
    const auto rkey = from(mem)->rkey();
    if (!rkey) return invalid("use mcast_mem_register_writable() for what others may write to");
    if (!from(mem)->covers(address, length)) return invalid("it is not inside the memory");
    *out = {htonl(from(mem)->device().ipv4().value()), htonl(*rkey),
            htobe64(reinterpret_cast<std::uintptr_t>(address)), htobe64(length)};
    return MCAST_OK;
  });
}

mcast_status_t mcast_target_part(const mcast_target_t* target, uint64_t offset, uint64_t length,
                                 mcast_target_t* out) {
  if (target == nullptr || out == nullptr) return invalid("the target, or out, is null");
  const std::uint64_t whole = be64toh(target->length);
  if (offset > whole || length > whole - offset) return invalid("the target has no such part");
  *out = {target->ipv4, target->rkey, htobe64(be64toh(target->address) + offset), htobe64(length)};
  return MCAST_OK;
}

mcast_status_t mcast_write_to(mcast_group_h group, const void* data, size_t length, mcast_mem_h mem,
                              const mcast_target_t* targets, size_t count, const uint32_t* imm,
                              mcast_op_t* op) {
  if (targets == nullptr && count > 0) return invalid("targets is null");
  return start_sending(group, data, length, op, [&](Group&, BulkLane& lane) {
    std::vector<wire::AnnouncedTarget> list;
    list.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const mcast_target_t& t = targets[i];
      list.push_back(
          {wire::Ipv4(ntohl(t.ipv4)), ntohl(t.rkey), be64toh(t.address), be64toh(t.length)});
    }
    const auto with_imm = imm != nullptr ? std::optional(*imm) : std::nullopt;
    return lane.write_to(data, length, from(mem), list, with_imm, op);
  });
}

mcast_status_t mcast_recv(mcast_group_h group, void* buffer, size_t length, mcast_mem_h mem,
                          mcast_op_t* op) {
  return with(from(group), [&](Group& g) {
    BulkLane* lane = nullptr;
    if (const auto status = check_bulk(g, buffer, length, op, lane); status != MCAST_OK) {
      return status;
    }
    if (g.state() == MCAST_GROUP_FAILED) return set_last_error(g.status(), g.reason());
    return start_bulk(g, lane->receive(buffer, length, from(mem), op));
  });
}
