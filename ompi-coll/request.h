// MPI_Request of a non-blocking broadcast: made active, completed once, freed by Open MPI; and of a
// persistent one, which is started any number of times.
#pragma once

#include <cstddef>

#include "ompi-coll/ompi_headers.h"

namespace cepheus::coll {

class CommunicatorState;

// What MPI_Bcast_init was given.
struct PersistentCall {
  void* buffer;
  std::size_t count;
  ompi_datatype_t* type;
  int root;  // rank
};

// False: this Open MPI's requests of collectives are not what they were when this was built.
bool requests_fit();
// Null if there is no memory.
ompi_request_t* make_request(ompi_communicator_t* comm);
ompi_request_t* make_persistent_request(CommunicatorState& state, const PersistentCall& call);
// `rc`: OMPI_SUCCESS or the broadcast's error. May call back into MPI: call it with nothing held.
void complete_request(ompi_request_t* request, int rc);

}  // namespace cepheus::coll
