// All communicators that coll/cepheus serves: their progress beside the program's calls, and their
// end, as they are freed or at the start of MPI_Finalize, while messages still flow.
#pragma once

#include "ompi-coll/communicator_state.h"

namespace cepheus::coll {

// Sets up what is needed to tear groups down while messages still flow: attributes on
// communicators, and on MPI_COMM_SELF for those that are never freed.
int watch_communicator(ompi_communicator_t* comm, CommunicatorState* state);
// From opal_progress: lets one communicator after the other do what it has to.
void progress_communicators();
// From opal_progress: what non-blocking broadcasts in flight can do now.
void progress_broadcasts();
// One more communicator has some, or one less.
void add_in_flight(int communicators);
// Gives those back to Open MPI that were freed by the program and whose groups are gone. Not from
// opal_progress.
void reap_communicators();

}  // namespace cepheus::coll
