// MPI_Request of a non-blocking call: a generalized request, which the thread that ends the call
// completes.
//
// MPI's functions that wait for such a request do not call us. Those that programs use are therefore
// defined in entry.cc, and call host::progress() while one of our calls is in flight. In other
// functions of MPI the background thread does.
#pragma once

#include "pmpi/buffer.h"
#include "pmpi/communicator.h"
#include "pmpi/mpi_abi.h"
#include "pmpi/reduction.h"

namespace cepheus::pmpi {

// The ranks of the communicator have exchanged tags. MPI's error, or kSuccess.
int start_request(Communicator& communicator, const BroadcastCall& call, Request& out);
int start_request(Communicator& communicator, const ReductionCall& call, Request& out);
// A failed call's, and its communicator.
struct Failure {
  int error = kSuccess;
  Comm comm = kCommNull;
};
// MPI reports failed requests of ours to MPI_COMM_WORLD. If this thread has set a failure, a request
// of a communicator that is not freed is reported there instead. Null: none is set.
void set_failure(Failure* failure);
// Non-blocking calls have begun, and their requests are not complete.
bool is_in_flight();

}  // namespace cepheus::pmpi
