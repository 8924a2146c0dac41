// Results and communicators of the collectives as Open MPI's, and back.
#pragma once

#include "collectives/core/code.h"
#include "collectives/host_mpi.h"
#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

// Open MPI's communicators as the port of the collectives names them.
inline ompi_communicator_t* communicator(const coll::host::Communicator& comm) {
  return reinterpret_cast<ompi_communicator_t*>(const_cast<coll::host::Communicator*>(&comm));
}
inline coll::host::Communicator& port_of(ompi_communicator_t* comm) {
  return *reinterpret_cast<coll::host::Communicator*>(comm);
}

// Open MPI 5's macro calls free(), which means another function in the port's namespace.
inline void release(ompi_communicator_t* comm) { OBJ_RELEASE(comm); }

struct CodePair {
  int theirs;
  coll::Code ours;
};
inline constexpr CodePair kCodes[] = {{OMPI_SUCCESS, coll::Code::kDone},
                                      {OMPI_ERROR, coll::Code::kFailed},
                                      {OMPI_ERR_OUT_OF_RESOURCE, coll::Code::kNoMemory},
                                      {MPI_ERR_TRUNCATE, coll::Code::kTruncated},
                                      {MPI_ERR_COUNT, coll::Code::kCountsDiffer},
                                      {MPI_ERR_ROOT, coll::Code::kRootsDiffer},
                                      {MPI_ERR_TRUNCATE, coll::Code::kEmpty}};

constexpr coll::Code to_code(int rc) {
  for (const CodePair& each : kCodes) {
    if (each.theirs == rc) return each.ours;
  }
  return static_cast<coll::Code>(rc);
}

constexpr int from_code(coll::Code code) {
  for (const CodePair& each : kCodes) {
    if (each.ours == code) return each.theirs;
  }
  return static_cast<int>(code);
}

}  // namespace cepheus::ompi
