// The ends of communicators: attributes whose deletion comes while messages still flow.
//
// By the time Open MPI disables a module its communicator can't communicate any more, but attribute
// callbacks run before that: on MPI_Comm_free for the communicator itself, and first thing in
// MPI_Finalize for MPI_COMM_SELF.
#pragma once

#include "collectives/communicator_state.h"
#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

// From now on `comm` is served until it, or the program, ends. OMPI_SUCCESS or Open MPI's error.
int attach(ompi_communicator_t* comm, coll::CommunicatorState& state);

}  // namespace cepheus::ompi
