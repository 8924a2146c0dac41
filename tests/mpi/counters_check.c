/* Broadcasts, then prints the MPI_T performance variables with "cepheus" in their names.
 *
 *   counters_check [--count N] [--bytes N] [--root RANK] [--reductions N]
 *
 * --reductions: before that N times each of MPI_Barrier, MPI_Allreduce, MPI_Reduce, MPI_Allgather and
 * of their non-blocking forms, with right results.
 */
#include "tests/mpi/pattern.h"
#include "tests/mpi/variables.h"

enum { kMostRanks = 64 };

static int is_wrong(double is, double should, const char* what) {
  if (is == should) return 0;
  fprintf(stderr, "counters_check: a result of %s is %g, not %g\n", what, is, should);
  return 1;
}

/* One of each; 0 if right. */
static int reduce(int rank, int size, int key) {
  const double own = rank + key, sum = size * (size - 1) / 2 + (double)size * key;
  const int root = key % size;
  double all = 0, at_root = -1, gathered[kMostRanks];
  int wrong = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  wrong |= is_wrong(all, sum, "MPI_Allreduce");
  MPI_Reduce(&own, &at_root, 1, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
  wrong |= is_wrong(at_root, rank == root ? sum : -1, "MPI_Reduce");
  MPI_Allgather(&own, 1, MPI_DOUBLE, gathered, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++) wrong |= is_wrong(gathered[i], i + key, "MPI_Allgather");
  return wrong;
}

/* The non-blocking forms, all under way together. */
static int start_to_reduce(int rank, int size, int key) {
  const double own = rank + key, sum = size * (size - 1) / 2 + (double)size * key;
  const int root = key % size;
  double all = 0, at_root = -1, gathered[kMostRanks];
  int wrong = 0;
  MPI_Request requests[4];
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Ireduce(&own, &at_root, 1, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD, &requests[2]);
  MPI_Iallgather(&own, 1, MPI_DOUBLE, gathered, 1, MPI_DOUBLE, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  wrong |= is_wrong(all, sum, "MPI_Iallreduce");
  wrong |= is_wrong(at_root, rank == root ? sum : -1, "MPI_Ireduce");
  for (int i = 0; i < size; i++) wrong |= is_wrong(gathered[i], i + key, "MPI_Iallgather");
  return wrong;
}

int main(int argc, char** argv) {
  int provided = 0, rank, size, wrong = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int reductions = atoi(option(argc, argv, "--reductions", "0"));
  const long count = atol(option(argc, argv, "--count", "10"));
  const size_t bytes = (size_t)atol(option(argc, argv, "--bytes", "100"));
  const int root = atoi(option(argc, argv, "--root", "0"));
  unsigned char* memory = get_memory(bytes);
  watch_variables();
  for (int i = 0; i < reductions; i++) {
    wrong |= reduce(rank, size, i);
    wrong |= start_to_reduce(rank, size, i);
  }
  for (long i = 0; i < count; i++) {
    wrong |= broadcast_and_check(memory, bytes, (uint64_t)i, root, MPI_COMM_WORLD);
  }
  if (rank == 0) print_variables();
  const int code = conclude(wrong, "broadcasts", count);
  free(memory);
  MPI_T_finalize(); /* first: Open MPI 4.1 crashes the other way round */
  MPI_Finalize();
  return code;
}
