// Which group addresses a leader uses.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/result.h"
#include "wire/splitmix.h"
#include "wire/types.h"

namespace cepheus::mrp {

// McstIDs for one leader: drawn from a pool in an order of its own, so that leaders that know
// nothing of each other seldom meet; a freed identifier rests before it is drawn again.
class McstAllocator {
 public:
  McstAllocator(wire::Ipv4Prefix pool, std::uint64_t seed, wire::Duration rest);
  struct Lease {
    wire::McstId id;
    std::uint16_t epoch;
  };
  wire::Result<Lease> allocate(wire::Instant now);  // kUnavailable: all are in use or resting
  void free(wire::Instant now, wire::McstId id);

 private:
  wire::Ipv4Prefix pool_;
  wire::SplitMix random_;
  wire::Duration rest_;
  struct Used {
    wire::McstId id;
    std::uint16_t epoch;
    bool in_use;
    wire::Instant rests_until;
  };
  std::vector<Used> used_;  // sorted by id
};

}  // namespace cepheus::mrp
