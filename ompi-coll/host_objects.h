// Open MPI's communicators as the port of the collectives names them.
#pragma once

#include "collectives/host_mpi.h"
#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

inline ompi_communicator_t* communicator(const coll::host::Communicator& comm) {
  return reinterpret_cast<ompi_communicator_t*>(const_cast<coll::host::Communicator*>(&comm));
}
inline coll::host::Communicator& port_of(ompi_communicator_t* comm) {
  return *reinterpret_cast<coll::host::Communicator*>(comm);
}

// Open MPI 5's macro calls free(), which means another function in the port's namespace.
inline void release(ompi_communicator_t* comm) { OBJ_RELEASE(comm); }

}  // namespace cepheus::ompi
