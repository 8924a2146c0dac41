// MPI_Request of a non-blocking broadcast or reduction: made active, completed once, freed by Open
// MPI; and of a persistent broadcast, which is started any number of times. Each has room for its call.
#pragma once

#include <cstddef>

#include "collectives/communicator_state.h"
#include "ompi-coll/reduction.h"

namespace cepheus::ompi {

// The arguments of MPI_Ibcast, or of MPI_Bcast_init.
struct BroadcastCall {
  Elements elements;
  int root;  // rank
};

// False: the layout of this Open MPI's collective requests differs from the one at build time.
bool requests_fit();
// A request for a broadcast of at least one byte, or for a reduction that has data or is a barrier.
// It has begun. Null if there is no memory.
ompi_request_t* start_request(coll::CommunicatorState& state, const BroadcastCall& call);
ompi_request_t* start_request(coll::CommunicatorState& state, const ReductionCall& call);
ompi_request_t* make_persistent_request(coll::CommunicatorState& state, const BroadcastCall& call);

}  // namespace cepheus::ompi
