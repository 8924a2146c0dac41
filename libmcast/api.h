// Shared by the files of the C face: handles, locks, outcomes as statuses. No exception leaves a
// call, and the text of its mistake stays for mcast_last_error().
#pragma once

#include <arpa/inet.h>
#include <endian.h>
#include <mcast/write.h>

#include <exception>
#include <new>
#include <type_traits>

#include "libmcast/context.h"
#include "libmcast/failure.h"
#include "libmcast/memory.h"
#include "libmcast/sized.h"

namespace cepheus::mcast {

inline constexpr const char* kForked = "it was opened before fork(): open one in this process";

inline Context* from(mcast_context_h h) { return reinterpret_cast<Context*>(h); }
inline Group* from(mcast_group_h h) { return reinterpret_cast<Group*>(h); }
inline Memory* from(mcast_mem_h h) { return reinterpret_cast<Memory*>(h); }
inline mcast_context_h handle(Context* c) { return reinterpret_cast<mcast_context_h>(c); }
inline mcast_group_h handle(Group* g) { return reinterpret_cast<mcast_group_h>(g); }
inline mcast_mem_h handle(Memory* m) { return reinterpret_cast<mcast_mem_h>(m); }

// Runs `body`, which returns a status or nothing. An exception of it becomes a status.
template <typename Body>
mcast_status_t guarded(Body&& body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return MCAST_OK;
    } else {
      return body();
    }
  } catch (const std::bad_alloc&) {
    return set_last_error(MCAST_ERR_NO_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return set_last_error(MCAST_ERR_FABRIC, e.what());
  }
}

inline mcast_status_t invalid(const char* text) { return set_last_error(MCAST_ERR_INVALID, text); }

template <typename T>
mcast_status_t status_of(const Expected<T>& outcome) {
  return outcome ? MCAST_OK : set_last_error(outcome.error());
}

// Checks that `out` is a structure which write_sized() may fill.
template <typename T>
mcast_status_t check_output(const T* out) {
  return out == nullptr ? invalid("out is null")
                        : guarded([&] { return status_of(check_size(*out)); });
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

// `others` as Memory::create's.
inline mcast_status_t register_memory(mcast_context_h context, void* address, std::size_t length,
                                      int others, mcast_mem_h* out) {
  if (out == nullptr) return invalid("out is null");
  *out = nullptr;
  if (address == nullptr || length == 0) return invalid("the address is null, or the length is 0");
  return with(from(context), [&](Context& c) {
    auto memory = Memory::create(c.share_device(), c.fork_generation(), address, length, others);
    if (memory) *out = handle(memory->release());
    return status_of(memory);
  });
}

inline mrp::MrpMember member_of(const mcast_member_t& m) {
  return {wire::Ipv4(ntohl(m.ipv4)), wire::Qpn(ntohl(m.qpn)), 0, ntohs(m.control_port),
          ntohl(m.token)};
}
inline mcast_member_t member_of(const mrp::MrpMember& m) {
  return {htonl(m.host.value()), htonl(m.qpn.value()), htons(m.control_port), 0, htonl(m.token)};
}

inline mcast_target_t target_of(wire::Ipv4 host, std::uint32_t rkey, std::uint64_t address,
                                std::uint64_t length) {
  return {htonl(host.value()), htonl(rkey), htobe64(address), htobe64(length)};
}

// `what` belongs on a lane of another kind than the group's.
inline mcast_status_t wrong_lane(Group& group, const std::string& what) {
  const char* const own = group.bulk() != nullptr ? " on a bulk lane: use mcast_send()"
                          : group.reduction() != nullptr
                              ? " on a reduction lane: use <mcast/reduce.h>"
                              : " on an eager lane: use mcast_send_eager()";
  return invalid((what + own + ", or a group with another lane").c_str());
}

// A bulk operation's arguments; the lane in `lane`.
inline mcast_status_t check_bulk(Group& group, const void* data, std::size_t length,
                                 const mcast_op_t* op, BulkLane*& lane) {
  lane = group.bulk();
  if (lane == nullptr) return wrong_lane(group, "a bulk operation");
  if (op == nullptr || op->done == nullptr) return invalid("a bulk operation needs op->done");
  if (data == nullptr && length > 0) return invalid("the buffer is null");
  return MCAST_OK;
}

inline mcast_status_t posted_status(Group& group, const Expected<void>& posted) {
  if (posted) return MCAST_INPROGRESS;
  if (posted.error().status == MCAST_ERR_FABRIC) {
    group.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK, posted.error().text);
  }
  return set_last_error(posted.error());
}

// Runs `start(group)` under the state lock, which checks everything and posts, unless the buffer
// lacks a region. Then the buffer is registered without the lock, and `start` runs again.
template <typename Start>
mcast_status_t start_bulk(mcast_group_h group, Buffer& buffer, Start start) {
  const mcast_status_t status = with(from(group), start);
  if (status != MCAST_INPROGRESS || !buffer.lacks_region()) return status;
  const mcast_status_t registered =
      guarded([&] { return status_of(buffer.register_on(from(group)->context().device())); });
  return registered == MCAST_OK ? with(from(group), start) : registered;
}

// Starts an operation of a sender on a bulk lane; `post` posts it.
template <typename Post>
mcast_status_t start_sending(mcast_group_h group, Group::Sending kind, const void* data,
                             std::size_t length, mcast_mem_h mem, const mcast_op_t* op, Post post) {
  Buffer buffer(data, length, from(mem), 0);  // the device only reads it
  return start_bulk(group, buffer, [&](Group& g) {
    BulkLane* lane = nullptr;
    if (const auto status = check_bulk(g, data, length, op, lane); status != MCAST_OK) {
      return status;
    }
    if (const auto may_send = g.check_may_send(length, kind); !may_send) {
      return set_last_error(may_send.error());
    }
    return posted_status(g, post(g, *lane, buffer));
  });
}

}  // namespace cepheus::mcast
