/* Many communicators: alive together, or one after the other.
 *
 *   communicators_check --alive N     N communicators (dup and split in turn), two rounds of
 *                                     broadcasts over all of them, then all freed in another order
 *   communicators_check --churn N     N times: make one, broadcast twice, free it; the second half
 *                                     needs no more memory than the first
 */
#include <unistd.h>

#include "tests/mpi/pattern.h"

enum { kMost = 40000, kMostKib = 4096 };

static MPI_Comm make(long i, int rank) {
  MPI_Comm comm;
  if (i % 3 == 2) {
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm); /* all, in another order */
  } else if (i % 3 == 1) {
    /* With four ranks, some have more communicators that multicast than others. */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 3, rank, &comm);
  } else {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  }
  return comm;
}

static int use(MPI_Comm comm, long i, unsigned char* memory) {
  int size;
  MPI_Comm_size(comm, &size);
  const uint64_t key = mix((uint64_t)i + 77);
  const size_t bytes = i % 16 == 5 ? kMost : 1 + (size_t)(key % 4000);
  return broadcast_and_check(memory, bytes, key, (int)(key % (uint64_t)size), comm);
}

static long resident_kib(void) {
  long pages = 0, all = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  if (f == NULL || fscanf(f, "%ld %ld", &all, &pages) != 2) pages = 0;
  if (f != NULL) fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const long alive = atol(option(argc, argv, "--alive", "0"));
  const long churn = atol(option(argc, argv, "--churn", "0"));
  unsigned char* memory = get_memory(kMost);

  MPI_Comm* comms = get_memory((size_t)(alive + 1) * sizeof(MPI_Comm));
  for (long i = 0; i < alive; i++) comms[i] = make(i, rank);
  for (int round = 0; round < 2; round++) {
    for (long i = 0; i < alive; i++) wrong |= use(comms[i], i, memory);
  }
  for (long i = alive; i > 0; i--) MPI_Comm_free(&comms[i - 1]);

  long half = 0;
  for (long i = 0; i < churn; i++) {
    if (i == churn / 2) half = resident_kib();
    MPI_Comm comm = make(i, rank);
    wrong |= use(comm, i, memory);
    wrong |= use(comm, i + 1, memory);
    MPI_Comm_free(&comm);
  }
  const long grown = resident_kib() - half;
  if (rank == 0 && churn > 0 && grown >= kMostKib) {
    fprintf(stderr, "communicators_check: %ld KiB for %ld communicators more\n", grown, churn / 2);
    wrong = 1;
  }

  const int code = conclude(wrong, "communicators", alive + churn);
  free(comms);
  free(memory);
  MPI_Finalize();
  return code;
}
