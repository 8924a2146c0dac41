// All communicators that coll/cepheus serves: their progress beside the program's calls, and their
// end, as they are freed or at the start of MPI_Finalize, while messages still flow.
#pragma once

#include "ompi-coll/communicator_state.h"

namespace cepheus::coll {

// Sets up what is needed to tear groups down while messages still flow: attributes on
// communicators, and on MPI_COMM_SELF for those that are never freed.
int watch_communicator(ompi_communicator_t* comm, CommunicatorState* state);
// From now on opal_progress lets groups and broadcasts in flight do what they have to. Before
// anything needs that it is not asked to: where many ranks share a core, each look costs all.
void begin_background_progress();
// At the component's end.
void end_background_progress();
// One more communicator has some, or one less.
void add_in_flight(int communicators);
// One more communicator is called, or one less: the next progress looks at those.
void add_called(int communicators);
// Gives those back to Open MPI that were freed by the program and whose groups are gone. Not from
// opal_progress.
void reap_communicators();

}  // namespace cepheus::coll
