/* The same reductions again and again, so that the safeguard judges them:
 *
 *   mpirun ... reduction_rounds_check [--count N] [--size BYTES] [--pairs rank|any]
 *
 * A round is an MPI_Allreduce of doubles, an MPI_Allgather of the same bytes, and an MPI_Barrier. A
 * sum must have the bits of sums in pairs by rank; with "any" those of rank 0's sum, which must be
 * near. Prints "ok: ..." on rank 0. */
#include <math.h>

#include "tests/mpi/pattern.h"

static double value_of(int round, int rank, int i) {
  return 0.1 * (rank + 1) + 1e9 / (round + i + 3);
}

/* ((0 1) (2 3)) ((4 5) ...) */
static double sum_in_pairs(double* values, int ranks) {
  for (int step = 1; step < ranks; step *= 2)
    for (int i = 0; i + step < ranks; i += 2 * step) values[i] += values[i + step];
  return values[0];
}

static void must_be(double got, double expected, const char* what, int round, int i) {
  if (memcmp(&got, &expected, sizeof got) == 0) return;
  fprintf(stderr, "%s, round %d: number %d is %a and should be %a\n", what, round, i, got,
          expected);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  int rank, ranks;
  start_mpi(&argc, &argv, &rank, &ranks);
  const int rounds = atoi(option(argc, argv, "--count", "100"));
  const int count = atoi(option(argc, argv, "--size", "8")) / (int)sizeof(double);
  const int by_rank = strcmp(option(argc, argv, "--pairs", "rank"), "rank") == 0;
  const size_t bytes = (size_t)count * sizeof(double);
  double *own = get_memory(bytes), *sums = get_memory(bytes),
         *all = get_memory(bytes * (size_t)ranks),
         *operands = get_memory((size_t)ranks * sizeof(double));
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < count; i++) own[i] = value_of(round, rank, i);
    MPI_Allreduce(own, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allgather(own, count, MPI_DOUBLE, all, count, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
      for (int from = 0; from < ranks; from++) {
        operands[from] = value_of(round, from, i);
        must_be(all[from * count + i], operands[from], "allgather", round, from * count + i);
      }
      const double sum = sum_in_pairs(operands, ranks);
      must_be(sums[i], by_rank || fabs(sums[i] - sum) > fabs(sum) * 1e-12 ? sum : sums[i],
              "allreduce", round, i);
    }
    if (by_rank) continue;
    memcpy(own, sums, bytes);
    MPI_Bcast(own, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) must_be(sums[i], own[i], "rank 0's allreduce", round, i);
  }
  if (rank == 0) printf("ok: %d rounds of %zu bytes among %d ranks\n", rounds, bytes, ranks);
  free(own);
  free(sums);
  free(all);
  free(operands);
  MPI_Finalize();
  return 0;
}
