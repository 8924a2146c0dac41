// MPI_Request of a non-blocking broadcast: made active, completed once, freed by Open MPI; and of a
// persistent one, which is started any number of times. Each has room for its broadcast.
#pragma once

#include <cstddef>

#include "collectives/communicator_state.h"
#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

// The arguments of MPI_Ibcast, or of MPI_Bcast_init.
struct BroadcastCall {
  void* memory;
  std::size_t count;
  ompi_datatype_t* type;
  int root;  // rank
};

// False: the layout of this Open MPI's collective requests differs from the one at build time.
bool requests_fit();
// A request for a broadcast of at least one byte, which has begun. Null if there is no memory.
ompi_request_t* start_request(coll::CommunicatorState& state, const BroadcastCall& call);
ompi_request_t* make_persistent_request(coll::CommunicatorState& state, const BroadcastCall& call);

}  // namespace cepheus::ompi
