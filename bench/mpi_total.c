/* Times many broadcasts in a row, as a program that does nothing else has them.
 *
 *   mpirun ... mpi_total COUNT SIZE[,SIZE...]
 *
 * One JSON object per size on rank 0's standard output: {"size", "seconds"}: from the moment when
 * all ranks begin until the last one has returned from the last of COUNT broadcasts from rank 0.
 * Before that, broadcasts of other sizes set groups up. Each size has a communicator of its own.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of both lanes, and of size classes without measurements. */
static const int kWarmUp[] = {3, 200000};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 3) {
    if (rank == 0) fprintf(stderr, "usage: mpi_total COUNT SIZE[,SIZE...]\n");
    MPI_Finalize();
    return 2;
  }
  const long count = atol(argv[1]);
  for (char* word = strtok(argv[2], ","); word != NULL; word = strtok(NULL, ",")) {
    const int size = atoi(word);
    const size_t bytes = size > kWarmUp[1] ? (size_t)size : (size_t)kWarmUp[1];
    char* buffer = malloc(bytes);
    memset(buffer, rank, bytes);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 2; i++) MPI_Bcast(buffer, kWarmUp[i], MPI_BYTE, 0, comm);
    MPI_Barrier(comm);
    const double began = MPI_Wtime();
    for (long i = 0; i < count; i++) MPI_Bcast(buffer, size, MPI_BYTE, 0, comm);
    const double own = MPI_Wtime() - began;
    double longest = 0;
    MPI_Reduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("{\"size\": %d, \"seconds\": %.6f}\n", size, longest);
    fflush(stdout);
    free(buffer);
    MPI_Comm_free(&comm);
  }
  MPI_Finalize();
  return 0;
}
