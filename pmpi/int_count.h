// A large count for MPI's functions with int counts. MPI libraries before MPI 4 have no MPI_Bcast_c, but
// a program finds the one of this library there.
#pragma once

#include "pmpi/mpi_abi.h"

namespace cepheus::pmpi {

// `count` elements of `type` as fewer ones, of a type of its own where an int has no room.
class IntCount {
 public:
  IntCount(Count count, Datatype type);
  IntCount(const IntCount&) = delete;
  IntCount& operator=(const IntCount&) = delete;
  ~IntCount();

  int count() const { return count_; }  // negative, which MPI reports: it can't make the type
  Datatype type() const { return type_; }

 private:
  int count_ = -1;
  Datatype type_;
  bool is_own_ = false;
};

}  // namespace cepheus::pmpi
