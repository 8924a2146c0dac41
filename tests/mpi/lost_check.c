/* Broadcasts from rank 0. The last rank is absent from one of them for some seconds, so that a test
 * can remove it from its group meanwhile. Every byte is checked on every rank. Plain MPI.
 *
 *   mpirun ... lost_check [--count N] [--size BYTES] [--pause SECONDS] [--after FILE]
 *                         [--ibcast 0|1] [--seed S]
 *
 * Before broadcast 3 (--ibcast 1: between its start and its MPI_Wait) the last rank prints
 * "pausing" on stdout and computes for SECONDS, which begin when FILE exists. Rank 0 prints
 * "started" after the first broadcast, each rank its process id before it. Exit 0 and a line
 * "ok: ..." if all was right.
 */
#include <unistd.h>

#include "tests/mpi/pattern.h"

enum { kMostSeconds = 60 }; /* until FILE exists */

static void pause_for(double seconds, const char* file) {
  print_now("pausing");
  volatile double x = 1;
  const double last = MPI_Wtime() + kMostSeconds;
  while (file[0] != '\0' && access(file, F_OK) != 0 && MPI_Wtime() < last) x = x * 1.0000001;
  for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) x = x * 1.0000001;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long count = atol(option(argc, argv, "--count", "12"));
  const size_t bytes = (size_t)atoll(option(argc, argv, "--size", "1000"));
  const double seconds = atof(option(argc, argv, "--pause", "1"));
  const char* const file = option(argc, argv, "--after", "");
  const int ibcast = atoi(option(argc, argv, "--ibcast", "0"));
  const uint64_t seed = strtoull(option(argc, argv, "--seed", "1"), NULL, 0);
  unsigned char* memory = get_memory(bytes);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("pid %d %d\n", rank, (int)getpid());
  fflush(stdout);
  for (long i = 0; i < count; i++) {
    const uint64_t key = mix(seed + (uint64_t)i);
    const int pauses = i == 3 && rank == size - 1;
    before_broadcast(memory, bytes, key, 0, MPI_COMM_WORLD);
    if (ibcast) {
      MPI_Request request;
      MPI_Ibcast(memory, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
      if (pauses) pause_for(seconds, file);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      if (pauses) pause_for(seconds, file);
      MPI_Bcast(memory, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    wrong |= after_broadcast(memory, bytes, key, 0, MPI_COMM_WORLD);
    if (i == 0 && rank == 0) print_now("started");
  }
  free(memory);
  return finish(wrong, "broadcasts", count);
}
