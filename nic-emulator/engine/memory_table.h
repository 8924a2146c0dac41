// Registered memory: translates keys and virtual addresses to bytes of this process (IBTA vol.
// 1, 10.6).
//
// A program may unmap memory that is still registered, or truncate its file. Pages that hardware has
// pinned would survive; here they are gone. Each access goes through a guard of the driver, which
// detects that. The region is then lost: its key is invalid, and the program still has to
// deregister it. Memory that the program has protected fails single accesses.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "nic-emulator/engine/verbs_types.h"
#include "wire/result.h"

namespace cepheus::rnic {

// A key is a slot number with a generation above it. Look-up is one array access, and the key of a
// deregistered region stays invalid while its slot serves other regions. Keys up to kLastChosenKey
// are never generated: programs may choose them.
class MemoryTable {
 public:
  static constexpr std::uint32_t kLastChosenKey = 0x10000;

  // `moves_payload`, `guard`: NicConfig's.
  MemoryTable(std::uint32_t max_regions, std::uint64_t seed, bool moves_payload = true,
              MemoryGuard guard = nullptr);

  // Returns the lkey, which is also the rkey if `access` allows remote operations. Errors:
  // kInvalid, kUnavailable.
  wire::Result<std::uint32_t> add(PdId pd, void* memory, std::uint64_t length, std::uint64_t iova,
                                  std::uint32_t access);
  // The same under a key of the caller's choice, 1 to kLastChosenKey. Gleam's appendix C needs it
  // for a WRITE that names one key for all its receivers. Errors: also kRefused, the key is in use.
  wire::Result<void> add_as(std::uint32_t key, PdId pd, void* memory, std::uint64_t length,
                            std::uint64_t iova, std::uint32_t access);
  bool remove(std::uint32_t key);
  // Changes a region in place; its key stays. Errors: kInvalid.
  wire::Result<void> change(std::uint32_t key, PdId pd, void* memory, std::uint64_t length,
                            std::uint64_t iova, std::uint32_t access);

  // The `length` > 0 bytes at `address`. Null: unknown key, another protection domain, a missing
  // access right, or bytes outside the region.
  std::uint8_t* translate(std::uint32_t key, PdId pd, std::uint64_t address, std::uint64_t length,
                          std::uint32_t needed_access) const {
    const std::uint32_t slot = key & slot_mask_;
    if (key <= kLastChosenKey) {
      const MemoryRegion* r = find_chosen(key);
      return r == nullptr ? nullptr : r->translate(pd, address, length, needed_access);
    }
    if (slot >= regions_.size()) return nullptr;
    const MemoryRegion& r = regions_[slot];
    if (!r.in_use || r.key != key) return nullptr;
    return r.translate(pd, address, length, needed_access);
  }

  // Copies from or to `memory`, which translate() gave for `key`, if payload moves at all. False: it
  // can't be accessed.
  bool copy_out(std::uint32_t key, const std::uint8_t* memory, void* to, std::size_t n) {
    return !moves_payload_ || touch(key, memory, n, [=] { std::memcpy(to, memory, n); });
  }
  bool copy_in(std::uint32_t key, std::uint8_t* memory, const void* from, std::size_t n) {
    return !moves_payload_ || touch(key, memory, n, [=] { std::memcpy(memory, from, n); });
  }
  // The same for a WRITE: its last bytes become visible last. Programs poll them to learn that the
  // rest is there, and a plain memcpy may store them first.
  bool copy_in_order(std::uint32_t key, std::uint8_t* memory, const std::uint8_t* from,
                     std::size_t n) {
    return !moves_payload_ || touch(key, memory, n, [=] {
      if (n >= kLastWord) {
        copy_last<kLastWord>(memory, from, n);
      } else {
        copy_last<1>(memory, from, n);
      }
    });
  }
  // The same for any work on `n` bytes of `memory`.
  template <typename Work>
  bool touch(std::uint32_t key, const std::uint8_t* memory, std::size_t n, Work work) {
    if (guard_ == nullptr) {
      work();
      return true;
    }
    const AccessEnd end = guard_(
        memory, n, [](void* w) { (*static_cast<Work*>(w))(); }, &work);
    if (end == AccessEnd::kDone) return true;
    lose(key, end);
    return false;
  }
  // A region that failed an access since the last call.
  std::optional<LostRegion> take_lost() { return std::exchange(lost_, std::nullopt); }

 private:
  static constexpr std::size_t kLastWord = sizeof(std::uint64_t);
  template <std::size_t kLast>
  static void copy_last(std::uint8_t* memory, const std::uint8_t* from, std::size_t n) {
    std::memcpy(memory, from, n - kLast);
    std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(memory + n - kLast, from + n - kLast, kLast);
  }

  struct MemoryRegion {
    std::uint32_t key = 0;
    PdId pd = 0;
    std::uint8_t* memory = nullptr;
    std::uint64_t iova = 0;
    std::uint64_t length = 0;
    std::uint32_t access = 0;
    bool in_use = false;

    std::uint8_t* translate(PdId by, std::uint64_t address, std::uint64_t bytes,
                            std::uint32_t needed_access) const {
      if (pd != by || (access & needed_access) != needed_access) return nullptr;
      const std::uint64_t offset = address - iova;  // wraps to something huge if below the region
      if (offset >= length || bytes > length - offset) return nullptr;
      return memory + offset;
    }
  };

  const MemoryRegion* find_chosen(std::uint32_t key) const;

  MemoryRegion* find(std::uint32_t key);  // null: not in use
  void lose(std::uint32_t key, AccessEnd why);

  std::uint32_t max_regions_;
  std::uint32_t slot_mask_;
  std::uint64_t seed_;
  bool moves_payload_;
  MemoryGuard guard_;
  std::optional<LostRegion> lost_;
  std::vector<MemoryRegion> regions_;
  std::deque<std::uint32_t> free_slots_;  // longest unused first
  std::vector<MemoryRegion> chosen_;      // by key
};

// Moves bytes between a message and the list of memory pieces that holds it (IBTA vol.
// 1, 10.7.2.2).
std::uint64_t total_length(std::span<const Sge> sges);

// Copies out.size() bytes of the message from `offset` on into `out`. False: a key does not allow
// reading, or the list is too short; `out` may be partly written then.
bool gather(MemoryTable& memory, PdId pd, std::span<const Sge> sges, std::uint64_t offset,
            std::span<std::uint8_t> out);

// Copies `data` to the message's bytes from `offset` on, under the same conditions with local write
// access.
bool scatter(MemoryTable& memory, PdId pd, std::span<const Sge> sges, std::uint64_t offset,
             std::span<const std::uint8_t> data);

}  // namespace cepheus::rnic
