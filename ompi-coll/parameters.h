// MCA parameters of coll/cepheus; `ompi_info --param coll cepheus --level 9` lists them.
#pragma once

#include "collectives/core/parameters.h"
#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

// Fills coll::parameters() in. The component's file has read `mode`.
void register_parameters(const mca_base_component_t* component, int mode);
// Open MPI ignores unknown parameters. So rank 0 of a job warns about unknown coll_cepheus_* ones.
void warn_of_unknown_parameters();
// Verbosity stream; -1 before open.
int& output_stream();

}  // namespace cepheus::ompi
