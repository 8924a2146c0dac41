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

}  // namespace cepheus::coll
