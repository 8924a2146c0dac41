// Open MPI's operations and basic types that the library arithmetic/ has.
#pragma once

#include "collectives/operators.h"
#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

using Operators = coll::Operators<ompi_op_t*, ompi_datatype_t*>;

const Operators& operators();

}  // namespace cepheus::ompi
