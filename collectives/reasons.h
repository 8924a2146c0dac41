// Why a call takes the saved function or messages, where the call or its count alone decides.
#pragma once

#include <string>

#include "collectives/core/parameters.h"
#include "collectives/host_mpi.h"
#include "collectives/reduction.h"

namespace cepheus::coll {

// The communicator has no group yet.
inline std::string not_earned(Collective collective) {
  const Parameters& p = parameters();
  const char* const calls =
      collective == Collective::kBcast ? " broadcasts or " : " reductions or ";
  return "a group is set up after " + std::to_string(p.calls_before_group(collective)) + calls +
         std::to_string(p.set_up_bytes) + " bytes of them (" + host::parameter("set_up_after") +
         ", " + host::parameter("set_up_bytes") + ")";
}

inline std::string too_long_to_gather() {
  return "more data of all ranks than the " + std::to_string(parameters().most_gathered) +
         " bytes of a gather";
}

// The saved function serves all reductions of this shape.
inline std::string not_ours(const ReductionShape& shape, int ranks) {
  if (is_short(shape, ranks))
    return "an operation of the program on more than " + std::to_string(kMostRanksByProgram) +
           " ranks";
  if (is_within(shape, parameters().reduction_bytes(), ranks)) return too_long_to_gather();
  return "more data of all ranks than " + host::parameter("reduction_limit");
}

}  // namespace cepheus::coll
