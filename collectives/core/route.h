// The ways that broadcasts take, as counters and `cepheusctl explain` know them.
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

// As `cepheusctl explain` shows them: of blocking broadcasts, and of others.
struct RouteText {
  const char* attended;
  const char* unattended;
};
constexpr RouteText text_of(Route route) {
  switch (route) {
    case Route::kEager:
      return {"eager lane", "ibcast: eager lane"};
    case Route::kBulk:
      return {"bulk lane", "ibcast: bulk lane"};
    case Route::kHosts:
      return {"hosts", "ibcast: hosts"};
    case Route::kTree:
      return {"point to point", "ibcast: point to point"};
    case Route::kSaved:
      return {"open mpi", "ibcast: open mpi"};
  }
  return {"unknown", "unknown"};
}

}  // namespace cepheus::coll
