// Memory is registered without the lock, then published under it. A number is free, published, or
// revoked. Revoked memory stays registered until the switch has confirmed; with same_key there is
// no publication, so it may go at once.
//
// Refused: regions of a group that announces its WRITEs, a number in use, more than kMaxRegions, a
// part of closed memory or of another context's.
#include "libmcast/published_regions.h"

namespace cepheus::mcast {

Expected<MrHandle> PublishedRegions::register_region(std::uint16_t number, void* address,
                                                     std::size_t length) const {
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  return same_key_ ? device_.register_memory_as(rkey_of(number), address, length, kAccess)
                   : device_.register_memory(address, length, kAccess);
}

Expected<void> PublishedRegions::check_free(std::uint16_t number) const {
  if (is_announced_) {
    return fail(
        MCAST_ERR_INVALID,
        "a group with per_request has no regions: name addresses (mcast_write_to), or create "
        "it without");
  }
  if (memory_.contains(number)) {
    return fail(MCAST_ERR_INVALID, "region " + std::to_string(number) +
                                       " is published already: revoke it first, or take another "
                                       "number");
  }
  if (memory_.size() == wire::Publication::kMaxRegions) {
    return fail(MCAST_ERR_INVALID, "a member publishes at most " +
                                       std::to_string(wire::Publication::kMaxRegions) +
                                       " regions in a group: make them larger");
  }
  return {};
}

Expected<void> PublishedRegions::publish(wire::Instant now, std::uint16_t number,
                                         MrHandle& memory) {
  if (auto free = check_free(number); !free) return free;
  if (!same_key_) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory->addr);
    publisher_.add(now, {number, memory->rkey, address, memory->length});
  }
  memory_.emplace(number, std::move(memory));
  return {};
}

Expected<void> PublishedRegions::publish_part(wire::Instant now, std::uint16_t number,
                                              const Memory& memory, std::size_t offset,
                                              std::size_t length) {
  if (same_key_) {
    return fail(MCAST_ERR_INVALID,
                "a region of a group with same_key lies at address 0 under a key of its own: "
                "register it anew with mcast_region_publish()");
  }
  const auto rkey = memory.rkey();
  const void* const part = memory.part(offset, length);
  if (!rkey || part == nullptr || &memory.device() != &device_) {
    return fail(MCAST_ERR_INVALID,
                "the memory has no such part, is closed to others, or another context's: register "
                "it on the group's context with mcast_mem_register_writable()");
  }
  if (auto free = check_free(number); !free) return free;
  publisher_.add(now, {number, *rkey, reinterpret_cast<std::uintptr_t>(part), length});
  memory_.emplace(number, nullptr);
  return {};
}

Expected<MrHandle> PublishedRegions::revoke(wire::Instant now, std::uint16_t number) {
  const auto at = memory_.find(number);
  if (at == memory_.end()) {
    return fail(MCAST_ERR_INVALID, "no region " + std::to_string(number) + " is published here");
  }
  MrHandle memory = std::move(at->second);
  memory_.erase(at);
  if (same_key_) return memory;
  publisher_.remove(now, number);
  revoked_.push_back(std::move(memory));
  return MrHandle();
}

}  // namespace cepheus::mcast
