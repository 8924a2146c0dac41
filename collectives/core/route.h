// The ways that broadcasts take.
#pragma once

#include <cstdint>

namespace cepheus::coll {

enum class Route : std::uint8_t {
  kEager,  // by multicast, copied
  kBulk,   // by multicast, straight between buffers
  kHosts,  // among one rank of each host, and inside hosts
  kTree,   // the rest of one, or all of it, point to point
  kSaved   // the MPI implementation's own algorithm
};

}  // namespace cepheus::coll
