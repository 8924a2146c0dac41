// A reference is the pool's number, its area and the slot in one word, so hold and drop are one
// array access. A slot without references goes back to its area's owner, or to the switch's own
// list. A pool without clients and references is freed by another thread, as that takes
// milliseconds.
//
// accept() takes an offset only within one slot of the client's own area that nobody holds. Bounds:
// kMaxUsers pools and a private one; kMaxSlots slots of a pool.
#include "switch-emulator/ports/payload_pool.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "wire/mrp.h"

namespace cepheus::fabric {

// A NIC's window towards each of many peers at once. The slots returned last are used first, so
// unused memory is never touched.
constexpr std::uint32_t kMinSlotsPerArea = 8192;
constexpr std::uint32_t kMaxSlots = 1u << 26;  // of a pool: limit of BufferRef
// The user id of nobody (setuid(2) treats it as an error).
constexpr uid_t kNobody = ~uid_t{0};

PoolGeometry PoolGeometry::for_hosts(std::uint32_t hosts, std::uint32_t mtu) {
  PoolGeometry geometry;
  geometry.areas = hosts + 1;
  geometry.slots_per_area = std::max(kMinSlotsPerArea, std::bit_ceil(2 * geometry.areas));
  // Half of that still leaves each egress a slot, and as many again for the first that need them.
  if (std::uint64_t{geometry.areas} * geometry.slots_per_area > kMaxSlots) {
    geometry.slots_per_area /= 2;
  }
  const std::uint32_t most = std::max<std::uint32_t>(mtu, wire::MrpMessage::kMaxDatagram);
  geometry.slot_bytes = (most + kCacheLine - 1) / kCacheLine * kCacheLine + kCacheLine;
  return geometry;
}

bool PoolGeometry::is_sane() const {
  const std::uint64_t slots = std::uint64_t{areas} * slots_per_area;
  return areas >= 2 && std::has_single_bit(slots_per_area) && areas <= slots_per_area &&
         slots <= kMaxSlots && slot_bytes >= 256 && slot_bytes <= 1u << 16 &&
         slot_bytes % kCacheLine == 0;
}

std::uint32_t PoolGeometry::guaranteed_slots() const {
  return std::max(1u, slots_per_area / 4 / areas);
}

std::size_t PoolGeometry::area_bytes() const {
  return round_up_to_page(std::size_t{slots_per_area} * slot_bytes);
}

PayloadPools::PayloadPools(const PoolGeometry& geometry)
    : geometry_(geometry),
      area_bytes_(geometry.area_bytes()),
      area_shift_(static_cast<unsigned>(std::countr_zero(geometry.slots_per_area))) {
  assert(geometry.is_sane());
}

wire::Result<std::uint32_t> PayloadPools::pool_for(uid_t uid) {
  const auto known = std::ranges::find_if(
      pools_, [uid](const Pool& pool) { return pool.slots != nullptr && pool.uid == uid; });
  if (known != pools_.end()) {
    ++known->clients;
    return static_cast<std::uint32_t>(known - pools_.begin());
  }
  const auto users = std::ranges::count_if(
      pools_, [](const Pool& pool) { return pool.slots != nullptr && pool.uid != kNobody; });
  if (uid != kNobody && users == kMaxUsers) {
    return wire::fail(wire::ErrorCode::kRefused,
                      "the fabric serves no more than " + std::to_string(kMaxUsers) + " users");
  }
  return make_pool(uid);
}

void PayloadPools::leave(std::uint32_t pool) {
  --pools_[pool].clients;
  free_if_unused(pools_[pool]);
}

// The kernel takes milliseconds to free its pages: not in the thread that moves frames.
void PayloadPools::free_if_unused(Pool& pool) {
  if (pool.clients != 0 || pool.in_use != 0) return;
  Pool unused = std::exchange(pool, {});
  try {
    std::thread([memory = std::move(unused.memory), file = std::move(unused.file)] {}).detach();
  } catch (const std::system_error&) {  // without another thread they are freed here
  }
}

std::optional<std::uint32_t> PayloadPools::private_pool() {
  if (!private_) {
    if (const auto pool = pool_for(kNobody)) private_ = *pool;
  }
  return private_;
}

bool PayloadPools::keep_private(wire::Frame& frame) {
  const auto pool = private_pool();
  return pool && copy_in(*pool, frame);
}

PayloadPools::Taken PayloadPools::take_private(std::size_t bytes) {
  const auto pool = private_pool();
  return pool ? take(*pool, bytes) : Taken();
}

wire::Result<std::uint32_t> PayloadPools::make_pool(uid_t uid) {
  auto file = create_shared_memory("cepheus-payloads", geometry_.pool_bytes());
  if (!file) return tl::unexpected(file.error());
  auto memory = Mapping::map(file->get(), 0, geometry_.pool_bytes(), Mapping::Access::kReadWrite);
  if (!memory) return tl::unexpected(memory.error());

  Pool pool;
  pool.uid = uid;
  pool.clients = 1;
  pool.file = std::move(*file);
  pool.memory = std::move(*memory);
  const std::size_t slots = std::size_t{geometry_.areas} * geometry_.slots_per_area;
  pool.slots.reset(static_cast<Slot*>(std::calloc(slots, sizeof(Slot))));
  if (pool.slots == nullptr) {
    return wire::unavailable("no memory for payload slots");
  }
  pool.areas.resize(geometry_.areas);
  pool.switch_free.reserve(geometry_.slots_per_area);
  for (std::uint32_t slot = geometry_.slots_per_area; slot-- > 0;) pool.switch_free.push_back(slot);
  auto place = std::ranges::find_if(pools_, [](const Pool& each) { return each.slots == nullptr; });
  if (place == pools_.end()) place = pools_.emplace(place);
  *place = std::move(pool);
  return static_cast<std::uint32_t>(place - pools_.begin());
}

void PayloadPools::set_owner(std::uint32_t pool, std::uint32_t area, SlotOwner* owner) {
  pools_[pool].areas[area].owner = owner;
  if (owner == nullptr) return;
  const Slot* slots = &pools_[pool].slots[std::size_t{area} << area_shift_];
  for (std::uint32_t slot = geometry_.slots_per_area; slot-- > 0;) {
    if (slots[slot].references == 0) owner->take_back(slot);
  }
}

bool PayloadPools::accept(std::uint32_t pool, std::uint32_t area, std::uint64_t offset,
                          wire::Frame& frame) {
  // Far beyond the area for an offset before it.
  const std::uint64_t in_area = offset - area * area_bytes_;
  const std::uint64_t slot = in_area / geometry_.slot_bytes;
  if (slot >= geometry_.slots_per_area) return false;
  const std::uint64_t in_slot = in_area % geometry_.slot_bytes;
  if (in_slot + frame.payload_len > geometry_.slot_bytes) return false;
  const auto number = static_cast<std::uint32_t>(slot);
  const Pool& owner = pools_[pool];
  if (owner.slots[(std::size_t{area} << area_shift_) + number].references != 0) return false;
  frame.set_external_payload({data(owner, area, number) + in_slot, frame.payload_len},
                             occupy(pool, area, number));
  return true;
}

PayloadPools::Taken PayloadPools::take(std::uint32_t pool, std::size_t bytes) {
  Pool& owner = pools_[pool];
  if (owner.switch_free.empty() || bytes > geometry_.slot_bytes) return {};
  const std::uint32_t slot = owner.switch_free.back();
  owner.switch_free.pop_back();
  return {{data(owner, geometry_.switch_area(), slot), bytes},
          occupy(pool, geometry_.switch_area(), slot)};
}

bool PayloadPools::copy_in(std::uint32_t pool, wire::Frame& frame) {
  const auto payload = frame.payload();
  const Taken taken = take(pool, payload.size());
  if (taken.ref == wire::kNoBuffer) return false;
  if (!payload.empty()) std::memcpy(taken.bytes.data(), payload.data(), payload.size());
  frame.set_external_payload(taken.bytes, taken.ref);
  return true;
}

wire::BufferRef PayloadPools::occupy(std::uint32_t pool, std::uint32_t area, std::uint32_t slot) {
  const wire::BufferRef ref = pool << kSlotBits | area << area_shift_ | slot;
  this->slot(ref).references = 1;
  ++pools_[pool].areas[area].in_use;
  ++pools_[pool].in_use;
  return ref;
}

void PayloadPools::free(wire::BufferRef ref) {
  Pool& pool = pools_[pool_of(ref)];
  const std::uint32_t number = slot_of(ref) & (geometry_.slots_per_area - 1);
  Area& area = pool.areas[area_of(ref)];
  --area.in_use;
  --pool.in_use;
  if (area_of(ref) == geometry_.switch_area()) {
    pool.switch_free.push_back(number);
  } else if (area.owner != nullptr) {
    area.owner->take_back(number);
  }
  free_if_unused(pool);
}

}  // namespace cepheus::fabric
