// What MPI says about a program's arguments, without reporting an error to the program.
#pragma once

#include <cstdint>

#include "pmpi/calls.h"
#include "pmpi/communicator.h"

namespace cepheus::pmpi {

// The type is committed: MPI packs no element of it.
inline bool is_ready(Datatype type) {
  char none = 0;
  int position = 0;
  return calls().Pack(&none, 0, type, &none, sizeof none, &position, own_communicator()) ==
         kSuccess;
}

// MPI_BOTTOM is null. A type has its data elsewhere only if its true lower bound says so.
inline bool has_memory(const void* memory, Datatype type) {
  if (memory != nullptr) return reinterpret_cast<std::intptr_t>(memory) != kInPlace;
  Count lower_bound = 0, extent = 0;
  return calls().Type_get_true_extent_x(type, &lower_bound, &extent) == kSuccess &&
         lower_bound != 0;
}

}  // namespace cepheus::pmpi
