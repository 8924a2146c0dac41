// What the component calls in libcepheus-coll.so, which has all of coll/cepheus but component.cc.
//
// Without the C++ library: component.cc includes it.
#pragma once

#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

struct Implementation {
  // All parameters but `mode`, and the variables of MPI_T.
  void (*register_all)(const mca_base_component_t* component, int mode);
  int (*open)();
  int (*close)();
  mca_coll_base_module_t* (*query)(ompi_communicator_t* comm, int* priority);
  int (*serves_world)();  // 1: Open MPI has chosen it for MPI_COMM_WORLD
};
inline constexpr char kImplementation[] = "cepheus_coll_implementation";  // an object

}  // namespace cepheus::ompi
