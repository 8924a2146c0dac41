// The module that Open MPI asks for on each communicator: coll/cepheus beside the modules that
// serve what it can't.
#pragma once

#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

extern "C" mca_coll_base_module_t* cepheus_comm_query(ompi_communicator_t* comm, int* priority);

}  // namespace cepheus::ompi
