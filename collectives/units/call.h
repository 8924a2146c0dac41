// One unit of one broadcast, as its members know it.
#pragma once

#include <cstdint>

#include "collectives/core/tree.h"
#include "collectives/group/team.h"
#include "collectives/units/payload.h"

namespace cepheus::coll {

// The same on all members but for the payload: derived from size x count only.
struct Call {
  const Team* team;
  int root;  // member
  uint64_t unit;
  uint64_t retry_after;  // should this rank have to decide, see Agreement
  Payload* payload;
  size_t offset, length;  // of the unit in the packed payload
  // Non-blocking: the first progress() starts all NIC work.
  bool non_blocking;

  bool is_root() const { return team->self() == root; }
};

inline Position position_of(const Call& call) {
  return {call.team->self(), call.team->size(), call.root};
}

}  // namespace cepheus::coll
