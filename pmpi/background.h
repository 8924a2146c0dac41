// Background progress: what other ranks need of this one while its program is not in a broadcast.
//
// A rank that lost its group asks the root of a broadcast for the data again, perhaps long after that
// call has returned there. MPI's public API calls nobody back, so a thread looks after groups while
// the program does not. It calls MPI: broadcasts are served only with MPI_THREAD_MULTIPLE. Each call
// lets MPI progress, so the thread may run the program's reduction functions (of non-blocking
// collectives) and other functions that MPI calls in its progress.
#pragma once

namespace cepheus::pmpi {

// From the first group on, and until MPI_Finalize.
void start_background();
void stop_background();
// The program's own calls go on without it.
void end_thread();
// One look, if it has started: the callers in a broadcast save the thread its own.
void progress_background();
// Of a request that has completed. Tests a few of those under way by one call of MPI, and all in turn.
// False: there is none, so MPI was not called.
bool run_notices();

}  // namespace cepheus::pmpi
