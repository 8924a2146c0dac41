// The module of coll/cepheus that Open MPI gets for each communicator. Other modules serve all
// other calls.
#pragma once

#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

extern "C" mca_coll_base_module_t* cepheus_comm_query(ompi_communicator_t* comm, int* priority);
// Open MPI has chosen it for MPI_COMM_WORLD.
bool serves_world();
// Open MPI 5 ends with the last session, and its keys with it. It may start again.
void forget_keyvals();

}  // namespace cepheus::ompi
