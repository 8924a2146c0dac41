// The collectives of MPI that the network can serve.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cepheus::coll {

enum class Collective : std::uint8_t { kBcast, kBarrier, kAllreduce, kReduce, kAllgather };
inline constexpr std::size_t kCollectives = 5;

// As the parameter `collectives` has it: "allreduce".
inline const char* name(Collective collective) {
  constexpr std::array<const char*, kCollectives> kNames{"bcast", "barrier", "allreduce", "reduce",
                                                         "allgather"};
  return kNames[static_cast<std::size_t>(collective)];
}

// The saved function, MPI's own, may serve any single call of this kind:
//
//   - it gives the same bits, because it moves data alone. It may reduce in another order than we do, and
//     by functions with other bits (arithmetic/README.md)
//   - it is blocking: all ranks are in one order then. A non-blocking call has its turn at any time,
//     and MPI wants its collectives to begin in one order on all ranks
inline bool may_be_saved(Collective collective, bool blocking) {
  return blocking && collective != Collective::kAllreduce && collective != Collective::kReduce;
}

}  // namespace cepheus::coll
