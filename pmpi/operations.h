// The program's operations of non-blocking reductions in flight. MPI lets a program free an operation
// meanwhile, and has no function that keeps one.
#pragma once

#include "pmpi/mpi_abi.h"

namespace cepheus::pmpi {

// It is not freed from now on, until as many calls of release_operation().
void hold_operation(Op op);
void release_operation(Op op);
// The program frees `op`. True: it is held, so the last release frees it.
bool free_later(Op op);

}  // namespace cepheus::pmpi
