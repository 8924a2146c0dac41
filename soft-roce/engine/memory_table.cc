#include "soft-roce/engine/memory_table.h"

#include <algorithm>
#include <bit>

#include "wire/splitmix.h"

namespace cepheus::rnic {
namespace {

// So many deregistered slots rest before the first is used again; until then the table grows.
constexpr std::size_t kRestingSlots = 64;
constexpr std::uint32_t kRemoteAccess = kRemoteWrite | kRemoteRead | kRemoteAtomic;

}  // namespace

MemoryTable::MemoryTable(std::uint32_t max_regions, std::uint64_t seed, bool moves_payload)
    : max_regions_(std::clamp(max_regions, 1u, 1u << 24)),
      slot_mask_(std::bit_ceil(max_regions_) - 1),
      seed_(seed),
      moves_payload_(moves_payload) {}

wire::Result<std::uint32_t> MemoryTable::add(PdId pd, void* memory, std::uint64_t length,
                                             std::uint64_t iova, std::uint32_t access) {
  constexpr std::uint32_t kRemoteModify = kRemoteWrite | kRemoteAtomic;
  if ((access & kRemoteModify) != 0 && (access & kLocalWrite) == 0) {
    return wire::fail(
        wire::ErrorCode::kInvalid,
        "remote write or atomic access needs local write: add IBV_ACCESS_LOCAL_WRITE");
  }
  if (memory == nullptr && length != 0) {
    return wire::fail(wire::ErrorCode::kInvalid,
                      "null memory: register an address in this process");
  }
  if (iova + length < iova) {
    return wire::fail(wire::ErrorCode::kInvalid,
                      "region wraps around the address space: lower iova or length");
  }
  std::uint32_t slot = 0;
  if (regions_.size() < max_regions_ && free_slots_.size() < kRestingSlots) {
    slot = static_cast<std::uint32_t>(regions_.size());
    Region fresh;
    fresh.key = (static_cast<std::uint32_t>(wire::splitmix(seed_, slot)) & ~slot_mask_) | slot;
    regions_.push_back(fresh);
  } else if (!free_slots_.empty()) {
    slot = free_slots_.front();
    free_slots_.pop_front();
  } else {
    return wire::fail(wire::ErrorCode::kUnavailable, "all memory regions in use: deregister some");
  }
  Region& r = regions_[slot];
  do {
    r.key += slot_mask_ + 1;  // next generation; key 0 is nobody's
  } while (r.key == 0);
  r.pd = pd;
  r.memory = static_cast<std::uint8_t*>(memory);
  r.iova = iova;
  r.length = length;
  r.access = access;
  r.in_use = true;
  return r.key;
}

MemoryTable::Region* MemoryTable::find(std::uint32_t key) {
  const std::uint32_t slot = key & slot_mask_;
  if (slot >= regions_.size() || !regions_[slot].in_use || regions_[slot].key != key) {
    return nullptr;
  }
  return &regions_[slot];
}

bool MemoryTable::remove(std::uint32_t key) {
  Region* const region = find(key);
  if (region == nullptr) return false;
  region->in_use = false;
  free_slots_.push_back(key & slot_mask_);
  return true;
}

bool MemoryTable::invalidate(std::uint32_t key, PdId pd) {
  Region* const region = find(key);
  if (region == nullptr || region->pd != pd || (region->access & kRemoteAccess) == 0) return false;
  region->access &= ~kRemoteAccess;
  return true;
}

}  // namespace cepheus::rnic
