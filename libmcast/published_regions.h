// Memory of this member that others of its group may write to, published to the switch. Memory of
// mcast_region_publish() is deregistered once the switch has forgotten it. Under the context's
// state lock, except register_region().
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "controller/publisher.h"
#include "libmcast/memory.h"

namespace cepheus::mcast {

class PublishedRegions {
 public:
  // `same_key`: mcast_group_params_t's. Switches then need no publication, and get none.
  PublishedRegions(const Device& device, mrp::Publisher& publisher, bool same_key)
      : device_(device), same_key_(same_key), publisher_(publisher) {}

  // The group has no regions: each WRITE is announced, and the switch must serve that. Before
  // begin().
  void announce() {
    is_announced_ = true;
    publisher_.announce({});
  }

  // INVALID: WRITEs are announced, the number is taken, or there are too many.
  Expected<void> check_free(std::uint16_t number) const;
  // NO_MEMORY: the device does not register it. Needs no lock.
  Expected<MrHandle> register_region(std::uint16_t number, void* address, std::size_t length) const;
  // `memory` of register_region(), which is taken, is the region of that number from now on. INVALID
  // as check_free().
  Expected<void> publish(wire::Instant now, std::uint16_t number, MrHandle& memory);
  // The same of memory that the caller has registered, and keeps so. INVALID also: it has no such
  // part, is closed to others or another device's, or the group is of same_key.
  Expected<void> publish_part(wire::Instant now, std::uint16_t number, const Memory& memory,
                              std::size_t offset, std::size_t length);
  // Memory that may be deregistered at once, or null.
  Expected<MrHandle> revoke(wire::Instant now, std::uint16_t number);

  // In the order of numbers; none with same_key.
  const std::vector<wire::MrpRegion>& list() const { return publisher_.regions(); }

  // The key in a WRITE to region `number` of all members: the number, or the common key.
  std::uint32_t rkey_of(std::uint16_t number) const {
    return same_key_ ? number + 1u : number;  // 0 is not a key
  }

  // The revoked memory, if it may be deregistered now.
  bool has_revoked() const { return !revoked_.empty() && publisher_.is_in_force(); }
  std::vector<MrHandle> take_revoked() { return std::exchange(revoked_, {}); }

 private:
  const Device& device_;
  const bool same_key_;
  bool is_announced_ = false;
  mrp::Publisher& publisher_;
  std::map<std::uint16_t, MrHandle> memory_;  // by number; null: the caller's
  std::vector<MrHandle> revoked_;             // a switch may still let WRITEs pass that end there
};

}  // namespace cepheus::mcast
