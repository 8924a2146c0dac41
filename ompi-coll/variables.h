// MPI_T performance variables of coll/cepheus (coll_cepheus_<name>; `ompi_info --all` lists them).
#pragma once

#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

void register_variables(const mca_base_component_t* component);

}  // namespace cepheus::ompi
