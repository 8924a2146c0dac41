// One MPI_Ibcast from its call until its request is complete.
//
// A communicator's are served one after the other, so units stay in one order on all ranks and its
// blocking broadcasts wait their turn. What the oldest one needs of the NICs is begun inside
// MPI_Ibcast, so its data moves while the program computes; the next one's turn comes when the
// program is in MPI, whatever it does there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ompi-coll/operation.h"
#include "ompi-coll/payload.h"

namespace cepheus::coll {

struct Ibcast {
  enum class Path : std::uint8_t { kUndecided, kFabric, kTree };

  Ibcast(void* buffer, size_t count, ompi_datatype_t* type, int to)
      : payload(buffer, count, type), root(to) {}

  Payload payload;
  const int root;
  bool small = false;
  ompi_request_t* request = nullptr;
  uint64_t first = 0;  // unit
  uint64_t unit = 0;   // the current one
  size_t done = 0;     // bytes of the units before it
  Path path = Path::kUndecided;
  bool tried_again = false;
  std::string reason;  // for the path
  std::unique_ptr<Operation> operation;
};

// Its request is to be completed once nothing is held any more.
struct Finished {
  ompi_request_t* request;
  int rc;
};

}  // namespace cepheus::coll
