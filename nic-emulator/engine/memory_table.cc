// Two tables: generated keys index an array of slots, chosen keys are looked up in a sorted one.
// Each has at most max_regions regions. A slot's key begins at random and grows by a generation at
// each use.
//
// A region that was unmapped or truncated is lost: its length becomes 0, so no address lies inside.
// A protected page fails one access only. gather() and scatter() visit the pieces in order, and
// earlier pieces stay copied if a later one fails.
#include "nic-emulator/engine/memory_table.h"

#include <algorithm>
#include <bit>
#include <string>

#include "wire/splitmix.h"

namespace cepheus::rnic {
namespace {

// The table grows until this many slots are free. Then the slot that was free longest is reused.
constexpr std::size_t kRestingRegions = 64;
constexpr std::uint32_t kRemoteModify = kRemoteWrite | kRemoteAtomic;

wire::Result<void> check(const void* memory, std::uint64_t length, std::uint64_t iova,
                         std::uint32_t access) {
  if ((access & kRemoteModify) != 0 && (access & kLocalWrite) == 0) {
    return wire::invalid(
        "remote write or atomic access needs local write: add IBV_ACCESS_LOCAL_WRITE");
  }
  if (memory == nullptr && length != 0) {
    return wire::invalid("null memory: register an address in this process");
  }
  if (iova + length < iova) {
    return wire::invalid("region wraps around the address space: lower iova or length");
  }
  return {};
}

}  // namespace

MemoryTable::MemoryTable(std::uint32_t max_regions, std::uint64_t seed, bool moves_payload,
                         MemoryGuard guard)
    : max_regions_(std::clamp(max_regions, 1u, 1u << 24)),
      slot_mask_(std::bit_ceil(max_regions_) - 1),
      seed_(seed),
      moves_payload_(moves_payload),
      guard_(guard) {}

wire::Result<std::uint32_t> MemoryTable::add(PdId pd, void* memory, std::uint64_t length,
                                             std::uint64_t iova, std::uint32_t access) {
  if (auto ok = check(memory, length, iova, access); !ok) return tl::unexpected(ok.error());
  std::uint32_t slot = 0;
  if (regions_.size() < max_regions_ && free_slots_.size() < kRestingRegions) {
    slot = static_cast<std::uint32_t>(regions_.size());
    MemoryRegion fresh;
    fresh.key = (static_cast<std::uint32_t>(wire::splitmix(seed_, slot)) & ~slot_mask_) | slot;
    regions_.push_back(fresh);
  } else if (!free_slots_.empty()) {
    slot = free_slots_.front();
    free_slots_.pop_front();
  } else {
    return wire::unavailable("all memory regions in use: deregister some");
  }
  MemoryRegion& r = regions_[slot];
  do {
    r.key += slot_mask_ + 1;  // next generation
  } while (r.key <= kLastChosenKey);
  r.pd = pd;
  r.memory = static_cast<std::uint8_t*>(memory);
  r.iova = iova;
  r.length = length;
  r.access = access;
  r.in_use = true;
  return r.key;
}

wire::Result<void> MemoryTable::add_as(std::uint32_t key, PdId pd, void* memory,
                                       std::uint64_t length, std::uint64_t iova,
                                       std::uint32_t access) {
  if (key == 0 || key > kLastChosenKey) {
    return wire::invalid("key " + std::to_string(key) + " can't be chosen: take 1 to " +
                         std::to_string(kLastChosenKey));
  }
  if (auto ok = check(memory, length, iova, access); !ok) return ok;
  if (find_chosen(key) != nullptr) {
    return wire::fail(wire::ErrorCode::kRefused,
                      "key " + std::to_string(key) + " is in use on this device: take another");
  }
  if (chosen_.size() >= max_regions_) {
    return wire::unavailable("all memory regions in use: deregister some");
  }
  const MemoryRegion region{
      key, pd, static_cast<std::uint8_t*>(memory), iova, length, access, /*in_use=*/true};
  chosen_.insert(std::ranges::upper_bound(chosen_, key, {}, &MemoryRegion::key), region);
  return {};
}

const MemoryTable::MemoryRegion* MemoryTable::find_chosen(std::uint32_t key) const {
  const auto at = std::ranges::lower_bound(chosen_, key, {}, &MemoryRegion::key);
  return at != chosen_.end() && at->key == key ? &*at : nullptr;
}

MemoryTable::MemoryRegion* MemoryTable::find(std::uint32_t key) {
  if (key <= kLastChosenKey) return const_cast<MemoryRegion*>(find_chosen(key));
  const std::uint32_t slot = key & slot_mask_;
  if (slot >= regions_.size() || !regions_[slot].in_use || regions_[slot].key != key) {
    return nullptr;
  }
  return &regions_[slot];
}

bool MemoryTable::remove(std::uint32_t key) {
  MemoryRegion* const region = find(key);
  if (region == nullptr) return false;
  if (key <= kLastChosenKey) {
    chosen_.erase(chosen_.begin() + (region - chosen_.data()));
    return true;
  }
  region->in_use = false;
  free_slots_.push_back(key & slot_mask_);
  return true;
}

wire::Result<void> MemoryTable::change(std::uint32_t key, PdId pd, void* memory,
                                       std::uint64_t length, std::uint64_t iova,
                                       std::uint32_t access) {
  MemoryRegion* const region = find(key);
  if (region == nullptr) return wire::invalid("no such region: it was deregistered");
  if (auto ok = check(memory, length, iova, access); !ok) return ok;
  *region = {key, pd, static_cast<std::uint8_t*>(memory), iova, length, access, /*in_use=*/true};
  return {};
}

void MemoryTable::lose(std::uint32_t key, AccessEnd why) {
  MemoryRegion* const region = find(key);
  if (region == nullptr || region->length == 0) return;
  lost_ = LostRegion{region->memory, region->length, why};
  if (why != AccessEnd::kProtected) region->length = 0;  // no byte lies inside
}

namespace {

// Calls copy(key, piece, position, n) for every piece of [offset, offset + length), in order, until
// it returns false.
template <typename Copy>
bool for_each_piece(const MemoryTable& memory, PdId pd, std::span<const Sge> sges,
                    std::uint64_t offset, std::size_t length, std::uint32_t access, Copy copy) {
  std::size_t done = 0;
  for (const Sge& sge : sges) {
    if (done == length) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::size_t n = std::min<std::uint64_t>(sge.length - offset, length - done);
    std::uint8_t* piece = memory.translate(sge.lkey, pd, sge.address + offset, n, access);
    if (piece == nullptr || !copy(sge.lkey, piece, done, n)) return false;
    done += n;
    offset = 0;
  }
  return done == length;
}

}  // namespace

std::uint64_t total_length(std::span<const Sge> sges) {
  std::uint64_t sum = 0;
  for (const Sge& sge : sges) sum += sge.length;
  return sum;
}

bool gather(MemoryTable& memory, PdId pd, std::span<const Sge> sges, std::uint64_t offset,
            std::span<std::uint8_t> out) {
  const auto copy = [&](std::uint32_t key, const std::uint8_t* piece, std::size_t at,
                        std::size_t n) { return memory.copy_out(key, piece, out.data() + at, n); };
  return for_each_piece(memory, pd, sges, offset, out.size(), 0, copy);
}

bool scatter(MemoryTable& memory, PdId pd, std::span<const Sge> sges, std::uint64_t offset,
             std::span<const std::uint8_t> data) {
  const auto copy = [&](std::uint32_t key, std::uint8_t* piece, std::size_t at, std::size_t n) {
    return memory.copy_in(key, piece, data.data() + at, n);
  };
  return for_each_piece(memory, pd, sges, offset, data.size(), kLocalWrite, copy);
}

}  // namespace cepheus::rnic
