/* Many communicators: alive together, or one after the other.
 *
 *   communicators_check --alive N     N communicators (dup and split in turn), two rounds of
 *                                     broadcasts over all of them, then all freed in another order
 *   communicators_check --churn N     N times: make one, broadcast twice, free it; the second half
 *                                     needs no more memory than the first
 *
 * --reduce 1: each broadcast is followed by a barrier, an MPI_Allreduce and an MPI_Allgather.
 * --until FILE: the communicators stay until FILE exists. Before, rank 0 prints "started", and each
 * rank "memory RANK KIB", which it has taken for them.
 */
#include <sched.h>
#include <unistd.h>

#include "tests/mpi/pattern.h"

enum { kMost = 40000, kMostKib = 4096 };

static int reduces;

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

/* 0 if right. */
static int reduce(MPI_Comm comm, long i, int rank, int size) {
  const long mine = i + rank;
  long sum = 0, wrong = 0;
  long* const all = get_memory((size_t)size * sizeof *all);
  MPI_Barrier(comm);
  MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
  MPI_Allgather(&mine, 1, MPI_LONG, all, 1, MPI_LONG, comm);
  for (int from = 0; from < size; from++) {
    wrong |= all[from] != i + from;
    sum -= i + from;
  }
  free(all);
  if (!wrong && sum == 0) return 0;
  fprintf(stderr, "communicators_check: rank %d of communicator %ld has a wrong result\n", rank, i);
  return 1;
}

static int use(MPI_Comm comm, long i, unsigned char* memory) {
  int size, rank;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  const uint64_t key = mix((uint64_t)i + 77);
  const size_t bytes = i % 16 == 5 ? kMost : 1 + (size_t)(key % 4000);
  const int wrong = broadcast_and_check(memory, bytes, key, (int)(key % (uint64_t)size), comm);
  return wrong | (reduces ? reduce(comm, i, rank, size) : 0);
}

static long resident_kib(void) {
  long pages = 0, all = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  if (f == NULL || fscanf(f, "%ld %ld", &all, &pages) != 2) pages = 0;
  if (f != NULL) fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void stay(const char* until, int rank, long kib) {
  printf("memory %d %ld\n", rank, kib);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) puts("started");
  fflush(stdout);
  for (int stop = 0; !stop; sched_yield()) {
    stop = rank == 0 && access(until, F_OK) == 0;
    MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  int rank, size, wrong = 0;
  start_mpi(&argc, &argv, &rank, &size);
  const long alive = atol(option(argc, argv, "--alive", "0"));
  const long churn = atol(option(argc, argv, "--churn", "0"));
  const char* until = option(argc, argv, "--until", NULL);
  reduces = atoi(option(argc, argv, "--reduce", "0"));
  unsigned char* memory = get_memory(kMost);
  const long before = resident_kib();

  MPI_Comm* comms = get_memory((size_t)(alive + 1) * sizeof(MPI_Comm));
  for (long i = 0; i < alive; i++) comms[i] = make(i, rank);
  for (int round = 0; round < 2; round++) {
    for (long i = 0; i < alive; i++) wrong |= use(comms[i], i, memory);
  }
  if (until != NULL) stay(until, rank, resident_kib() - before);
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

  free(comms);
  free(memory);
  return finish(wrong, "communicators", alive + churn);
}
