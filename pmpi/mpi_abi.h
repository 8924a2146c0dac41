// The part of MPI's C interface that this library uses. Each ABI has a header and a build of its own.
#pragma once

#ifdef CEPHEUS_OPENMPI
#include "pmpi/openmpi_abi.h"
#else
#include "pmpi/mpich_abi.h"
#endif
