// One MPI_Bcast, MPI_Ibcast, or start of a persistent broadcast, from its call until it is done.
//
// A communicator's are served one after the other in the order of their calls, so units stay in one
// order on all ranks and a blocking one waits its turn. What the oldest one needs of the NICs is
// begun inside its call, so its data moves while the program computes; the next one's turn comes
// when the program is in MPI, whatever it does there.
#pragma once

#include <mcast/mcast.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ompi-coll/course.h"
#include "ompi-coll/payload.h"

namespace cepheus::coll {

struct Broadcast {
  Broadcast(void* buffer, size_t count, ompi_datatype_t* type, int root_rank, bool is_attended)
      : payload(buffer, count, type),
        root(root_rank),
        attended(is_attended),
        began(mcast_report_begin()) {}

  Payload payload;
  const int root;        // rank of the communicator
  const bool attended;   // blocking: the program waits inside MPI until it is done
  const uint64_t began;  // for recordings: ns, 0 while there is none
  ompi_request_t* request = nullptr;
  std::unique_ptr<Course> course;  // from its turn on
};

// Its request is to be completed once nothing is held any more.
struct Finished {
  ompi_request_t* request;
  int rc;
};

}  // namespace cepheus::coll
