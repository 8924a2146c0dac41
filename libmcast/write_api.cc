// <mcast/write.h>: memory that others may write to, and WRITEs into it. Publishing has three steps:
// check under the lock, register without it, publish under it. Another thread may take the number
// in between; the last step refuses that. Memory that a revocation sets free is deregistered
// without the lock. A part outside its target or its memory is refused.
#include <mcast/write.h>

#include <utility>
#include <vector>

#include "libmcast/api.h"
#include "wire/clock.h"

using namespace cepheus::mcast;
namespace wire = cepheus::wire;

mcast_status_t mcast_region_publish(mcast_group_h group, uint16_t region, void* address,
                                    size_t length) {
  if (address == nullptr || length == 0) return invalid("the address is null, or the length is 0");
  const auto checked =
      with(from(group), [&](Group& g) { return status_of(g.check_may_publish(region)); });
  if (checked != MCAST_OK) return checked;
  MrHandle memory;  // registered without the state lock, since that may take long
  const auto registered = guarded([&] {
    auto made = from(group)->register_region(region, address, length);
    if (made) memory = std::move(*made);
    return status_of(made);
  });
  if (registered != MCAST_OK) return registered;
  return with(from(group), [&](Group& g) {
    return status_of(g.publish(wire::monotonic_now(), region, memory));
  });
}

mcast_status_t mcast_region_publish_part(mcast_group_h group, uint16_t region, mcast_mem_h mem,
                                         size_t offset, size_t length) {
  if (mem == nullptr || length == 0) return invalid("the memory is null, or the length is 0");
  return with(from(group), [&](Group& g) {
    return status_of(g.publish_part(wire::monotonic_now(), region, *from(mem), offset, length));
  });
}

mcast_status_t mcast_region_revoke(mcast_group_h group, uint16_t region) {
  MrHandle memory;  // deregistered without the state lock, since that may take long
  return with(from(group), [&](Group& g) {
    auto revoked = g.revoke(wire::monotonic_now(), region);
    if (revoked) memory = std::move(*revoked);
    return status_of(revoked);
  });
}

mcast_status_t mcast_region_test(mcast_group_h group) {
  return with(from(group), [&](Group& g) {
    const mcast_status_t status = g.engine().role().regions_status();
    if (status == MCAST_OK && g.context().holds_discarded()) return MCAST_INPROGRESS;
    return status < 0 ? set_last_error(status, g.reason()) : status;
  });
}

mcast_status_t mcast_write(mcast_group_h group, const void* data, size_t length, mcast_mem_h mem,
                           uint16_t region, uint64_t offset, const uint32_t* imm, mcast_op_t* op) {
  return start_sending(group, Group::Sending::kInParts, data, length, mem, op,
                       [&](Group& g, BulkLane& lane, Buffer& buffer) {
                         const auto with_imm = imm != nullptr ? std::optional(*imm) : std::nullopt;
                         return lane.write(buffer, g.place_in(region, offset), with_imm, op);
                       });
}

mcast_status_t mcast_mem_register_writable(mcast_context_h context, void* address, size_t length,
                                           mcast_mem_h* out) {
  return register_memory(context, address, length, IBV_ACCESS_REMOTE_WRITE, out);
}

mcast_status_t mcast_mem_register_shared(mcast_context_h context, void* address, size_t length,
                                         mcast_mem_h* out) {
  return register_memory(context, address, length, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
                         out);
}

mcast_status_t mcast_mem_target(mcast_mem_h mem, void* address, size_t length,
                                mcast_target_t* out) {
  if (mem == nullptr || out == nullptr) return invalid("the memory, or out, is null");
  return guarded([&] {
    const auto rkey = from(mem)->rkey();
    if (!rkey)
      return invalid("use mcast_mem_register_writable() for memory that others may write to");
    if (!from(mem)->covers(address, length)) return invalid("it is not inside the memory");
    *out = target_of(from(mem)->device().ipv4(), *rkey, reinterpret_cast<std::uintptr_t>(address),
                     length);
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
  const auto kind = Group::Sending::kWhole;
  return start_sending(
      group, kind, data, length, mem, op, [&](Group&, BulkLane& lane, Buffer& buffer) {
        std::vector<wire::AnnouncedTarget> list;
        list.reserve(count);
        for (size_t i = 0; i < count; ++i) {
          const mcast_target_t& t = targets[i];
          list.push_back(
              {wire::Ipv4(ntohl(t.ipv4)), ntohl(t.rkey), be64toh(t.address), be64toh(t.length)});
        }
        const auto with_imm = imm != nullptr ? std::optional(*imm) : std::nullopt;
        return lane.write_to(buffer, list, with_imm, op);
      });
}
