// MPI_Request of a non-blocking broadcast: made active, completed once, freed by Open MPI.
#pragma once

#include "ompi-coll/ompi_headers.h"

namespace cepheus::coll {

// False: this Open MPI's requests of collectives are not what they were when this was built.
bool requests_fit();
// Null if there is no memory.
ompi_request_t* make_request(ompi_communicator_t* comm);
// `rc`: OMPI_SUCCESS or the broadcast's error. May call back into MPI: call it with nothing held.
void complete_request(ompi_request_t* request, int rc);

}  // namespace cepheus::coll
