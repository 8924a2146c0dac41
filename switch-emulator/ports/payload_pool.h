// Payloads in shared memory: one pool per user, divided into areas of slots, one area per host and
// one for the switch.
//
//   pool    area 0 | area 1 | ... | area hosts-1 | the switch's area
//   area    slots_per_area slots of slot_bytes each, rounded up to pages
//
// A host writes payloads into slots of its own area. Frames on rings refer to them, and every
// client of that user can read them: replication by reference. Only the switch knows which slots
// are in use: the counts are in its private memory, one for each ring entry, held frame and frame
// on a slow link. A slot without references belongs to its area's owner again and is returned.
// Clients of other users get copies in the switch's area of their own pool.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "switch-emulator/ports/sender_shares.h"
#include "switch-emulator/ports/shared_memory.h"
#include "wire/frame.h"
#include "wire/result.h"
#include "wire/share.h"

namespace cepheus::fabric {

struct PoolGeometry {
  static constexpr std::uint32_t kMaxHosts = 4096;

  std::uint32_t areas = 0;           // one per host and one for the switch
  std::uint32_t slots_per_area = 0;  // power of two
  std::uint32_t slot_bytes =
      0;  // whole cache lines, not pages, so that slots spread over cache sets

  // For payloads of `mtu` bytes and registration datagrams, from `hosts` hosts, kMaxHosts at most.
  static PoolGeometry for_hosts(std::uint32_t hosts, std::uint32_t mtu);
  bool is_sane() const;
  // Slots of an area that each egress may always occupy.
  std::uint32_t guaranteed_slots() const;
  std::uint32_t switch_area() const { return areas - 1; }
  std::size_t area_bytes() const;
  std::size_t pool_bytes() const { return areas * area_bytes(); }
};

// Gets slots of an area back.
class SlotOwner {
 public:
  virtual void take_back(std::uint32_t slot) = 0;

 protected:
  ~SlotOwner() = default;
};

// The switch's end of all pools. BufferRef names (pool, slot). Not thread-safe.
class PayloadPools {
 public:
  static constexpr std::uint32_t kMaxUsers = 63;

  explicit PayloadPools(const PoolGeometry& geometry);

  // The pool of a user's clients, created for the first of them. Each client leaves it once. When
  // the last has left and the switch holds none of its payloads, its memory is freed.
  wire::Result<std::uint32_t> pool_for(uid_t uid);
  void leave(std::uint32_t pool);
  // Like copy_in(), into memory that no client can read: for payloads of no user.
  bool keep_private(wire::Frame& frame);
  // A slot of that memory for `bytes`, with one reference; kNoBuffer: none is free.
  struct Taken {
    std::span<std::uint8_t> bytes;
    wire::BufferRef ref = wire::kNoBuffer;
  };
  Taken take_private(std::size_t bytes);
  std::size_t pool_count() const { return pools_.size(); }
  std::span<std::uint8_t> memory(std::uint32_t pool) {
    return {pools_[pool].memory.data(), geometry_.pool_bytes()};
  }
  int fd(std::uint32_t pool) const { return pools_[pool].file.get(); }
  const PoolGeometry& geometry() const { return geometry_; }

  // Hands the area's free slots to `owner`, and later those that become free; null: they wait for
  // the next owner.
  void set_owner(std::uint32_t pool, std::uint32_t area, SlotOwner* owner);

  // A payload of a host at `offset` of its pool: takes the first reference and sets the frame's
  // payload. False if it is not in one slot of `area`, or the switch still holds that slot.
  bool accept(std::uint32_t pool, std::uint32_t area, std::uint64_t offset, wire::Frame& frame);
  // Copies the frame's payload into a slot of the switch's area, with one reference. False if none
  // is free.
  bool copy_in(std::uint32_t pool, wire::Frame& frame);

  void hold(wire::BufferRef ref) { ++slot(ref).references; }
  void drop(wire::BufferRef ref) {
    if (--slot(ref).references == 0) free(ref);
  }
  static std::uint32_t pool_of(wire::BufferRef ref) { return ref >> kSlotBits; }
  std::uint32_t area_of(wire::BufferRef ref) const { return slot_of(ref) >> area_shift_; }
  std::uint64_t offset_of(const wire::Frame& frame) const {
    return static_cast<std::uint64_t>(frame.external - pools_[pool_of(frame.ref)].memory.data());
  }
  // The sender of the payload in a slot: the area's own host. In the switch's area, which hosts
  // behind network interfaces share, the sender that was noted last.
  bool is_common(wire::BufferRef ref) const { return area_of(ref) == geometry_.switch_area(); }
  SenderNo sender_of(wire::BufferRef ref) const {
    return is_common(ref) ? slot(ref).sender : area_of(ref);
  }
  void note_sender(wire::BufferRef ref, SenderNo sender) { slot(ref).sender = sender; }
  // Slots of the area that frame payloads occupy now.
  std::uint32_t in_use(wire::BufferRef ref) const {
    return pools_[pool_of(ref)].areas[area_of(ref)].in_use;
  }
  std::uint32_t in_use(std::uint32_t pool, std::uint32_t area) const {
    // It may have been freed.
    return pools_[pool].in_use == 0 ? 0 : pools_[pool].areas[area].in_use;
  }

 private:
  static constexpr std::uint32_t kSlotBits = 26;

  struct Slot {
    std::uint32_t references;
    SenderNo sender;
  };
  // Zeroes that take no memory before they are used: most areas are never used.
  struct Freed {
    void operator()(Slot* slots) const { std::free(slots); }
  };
  struct Area {
    SlotOwner* owner = nullptr;
    std::uint32_t in_use = 0;
  };
  struct Pool {
    uid_t uid = 0;
    std::uint32_t clients = 0;
    std::uint32_t in_use = 0;  // of all areas
    UniqueFd file;
    Mapping memory;
    std::unique_ptr<Slot[], Freed> slots;  // null: no pool, its number is free
    std::vector<Area> areas;
    std::vector<std::uint32_t> switch_free;  // slot numbers within the switch's area
  };

  static std::uint32_t slot_of(wire::BufferRef ref) { return ref & ((1u << kSlotBits) - 1); }
  Slot& slot(wire::BufferRef ref) const { return pools_[pool_of(ref)].slots[slot_of(ref)]; }
  std::uint8_t* data(const Pool& pool, std::uint32_t area, std::uint32_t slot) const {
    return pool.memory.data() + area * area_bytes_ + std::size_t{slot} * geometry_.slot_bytes;
  }
  wire::BufferRef occupy(std::uint32_t pool, std::uint32_t area, std::uint32_t slot);
  void free(wire::BufferRef ref);
  void free_if_unused(Pool& pool);

  wire::Result<std::uint32_t> make_pool(uid_t uid);
  std::optional<std::uint32_t> private_pool();
  Taken take(std::uint32_t pool, std::size_t bytes);

  PoolGeometry geometry_;
  std::size_t area_bytes_;
  unsigned area_shift_;
  std::vector<Pool> pools_;
  std::optional<std::uint32_t> private_;  // pool of keep_private() and take_private()
};

// One egress's share of the slots: receivers that stopped reading must not use up all.
//
// A quarter of an area is reserved and divided evenly; of the rest each egress has a share
// (wire/share.h). So a single slow receiver may lag far behind, and however many stop, the sender
// keeps slots for the others.
class EgressShare {
 public:
  explicit EgressShare(const PayloadPools& pools)
      : pools_(pools),
        guaranteed_(pools.geometry().guaranteed_slots()),
        common_(pools.geometry().slots_per_area - guaranteed_ * pools.geometry().areas) {}

  // Slots of an area that this egress may occupy while no other occupies any.
  std::uint32_t most_of_one() const {
    return std::max(guaranteed_, static_cast<std::uint32_t>(Slots::of_one(common_)));
  }
  // Counts one more reference to the frame's slot, unless the share is used up.
  bool try_add(wire::BufferRef ref) {
    Slots& slots = slots_of(ref);
    const std::uint32_t free = common_ - std::min(pools_.in_use(ref), common_);
    if (slots.held() >= guaranteed_ && slots.held() > Slots::threshold(free)) return false;
    slots.add();
    return true;
  }
  // The same beyond the share, for a frame that must not be dropped.
  void add(wire::BufferRef ref) { slots_of(ref).add(); }
  void remove(wire::BufferRef ref) { slots_of(ref).remove(); }

 private:
  using Slots = wire::Share<std::uint32_t>;
  Slots& slots_of(wire::BufferRef ref) {
    const std::size_t areas = pools_.geometry().areas;
    const std::size_t index = PayloadPools::pool_of(ref) * areas + pools_.area_of(ref);
    if (index >= slots_.size()) slots_.resize(pools_.pool_count() * areas);
    return slots_[index];
  }

  const PayloadPools& pools_;
  std::uint32_t guaranteed_;
  std::uint32_t common_;      // slots beyond the guaranteed ones
  std::vector<Slots> slots_;  // by pool and area; grows with the pools
};

}  // namespace cepheus::fabric
