/* A tool that programs preload: counts calls of a few functions by PMPI_, as profilers do, and prints
 * them on rank 0 in MPI_Finalize. With -DWITHOUT_INIT_THREAD it defines no MPI_Init_thread. */
#include <mpi.h>
#include <stdio.h>

static int inits, broadcasts, waits;

int MPI_Init(int* argc, char*** argv) {
  inits++;
  return PMPI_Init(argc, argv);
}

#ifndef WITHOUT_INIT_THREAD
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  inits++;
  return PMPI_Init_thread(argc, argv, required, provided);
}
#endif

int MPI_Bcast(void* memory, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  broadcasts++;
  return PMPI_Bcast(memory, count, type, root, comm);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  waits++;
  return PMPI_Wait(request, status);
}

int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    printf("tool: %d inits, %d broadcasts, %d waits\n", inits, broadcasts, waits);
    fflush(stdout);
  }
  return PMPI_Finalize();
}
