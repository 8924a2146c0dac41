// The search begins at a random address and goes upwards, around the end of the pool. A block's
// first and last address are never used, except in blocks of one or two. Each further use of an
// address raises its epoch; so every address that was ever used keeps its entry.
#include "controller/mcst_allocator.h"

#include <algorithm>
#include <cassert>

namespace cepheus::mrp {

using wire::Instant;
using wire::McstId;

namespace {

// The first and the last address of a block are its network and broadcast address to other
// equipment.
std::uint64_t usable(const wire::Ipv4Prefix& pool) {
  return pool.length >= 31 ? pool.size() : pool.size() - 2;
}

}  // namespace

McstAllocator::McstAllocator(wire::Ipv4Prefix pool, std::uint64_t seed, wire::Duration rest)
    : pool_(pool), random_(seed), rest_(rest) {}

wire::Result<McstAllocator::Lease> McstAllocator::allocate(Instant now) {
  const std::uint64_t count = usable(pool_);
  const std::uint32_t first = pool_.base.value() + (pool_.length >= 31 ? 0 : 1);
  // Searches upwards from a random place, at most one address more than are used. used_ is sorted, so
  // each step meets the next used one.
  const std::uint64_t start = random_.next() % count;
  for (std::uint64_t step = 0; step != count; ++step) {
    const McstId id(first + static_cast<std::uint32_t>((start + step) % count));
    const auto at = std::ranges::lower_bound(used_, id, {}, &Used::id);
    if (at == used_.end() || at->id != id) {
      used_.insert(at, Used{id, 1, true, wire::kNever});
      return Lease{id, 1};
    }
    if (!at->in_use && at->rests_until <= now) {
      at->in_use = true;
      ++at->epoch;
      return Lease{id, at->epoch};
    }
  }
  return wire::unavailable("all " + std::to_string(count) + " group addresses of " +
                           pool_.to_string() +
                           " are in use or resting: free groups or give a larger pool");
}

void McstAllocator::free(Instant now, McstId id) {
  const auto at = std::ranges::lower_bound(used_, id, {}, &Used::id);
  assert(at != used_.end() && at->id == id && at->in_use);
  at->in_use = false;
  at->rests_until = now + rest_;
}

}  // namespace cepheus::mrp
