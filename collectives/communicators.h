// All communicators that the collectives serve: their progress beside the program's calls, and
// their end, while messages still arrive. README.md has a communicator's life.
#pragma once

#include "collectives/communicator_state.h"

namespace cepheus::coll {

// Adds a communicator.
void watch_communicator(CommunicatorState& state);
// The program frees it: messages still flow, and no call on it follows. `is_in_progress`: MPI does so
// inside its progress, which may not be called again there. Then later calls do the rest.
void free_communicator(CommunicatorState& state, bool is_in_progress = false);
// Its object ends, perhaps without any of the other functions: nothing looks at it again.
void forget_communicator(const CommunicatorState& state);
// The program is in MPI_Finalize: messages still flow on all communicators. Ends all but those that
// outlive it.
void finalize_communicators();

// The host's progress calls it. False: there was nothing to do, so the core may be given away.
bool progress_in_background();
// Called only once a team may multicast: where many ranks share a core, each look costs all of
// them.
void begin_background_progress();
// At the component's end.
void end_background_progress();

// A change of the number of communicators with non-blocking broadcasts in flight.
void add_in_flight(int communicators);
// A change of the number of called communicators: the next progress serves those.
void add_called(int communicators);
// Advances communicators that the program has freed, and gives them back to the host once their
// groups are gone: every 100 us at most. A program may free them faster than progress looks at each.
// Not from progress_in_background().
void release_communicators();

}  // namespace cepheus::coll
