/* How well MPI_Ibcast and a computation overlap.
 *
 *   mpirun ... mpi_overlap [--rounds N] [--seconds S] SIZE[,SIZE...]
 *
 * Each round takes three times, from a start that all ranks share (start_page.h) to the last
 * rank's end: a broadcast alone (MPI_Ibcast and MPI_Wait), a
 * computation alone that is as long as broadcasts have been so far (the median), and the
 * computation between MPI_Ibcast and MPI_Wait, which calls nothing of MPI. At most N rounds, and no
 * new one after S seconds, for each size.
 *
 * One JSON object per size on rank 0's standard output: {"size", "rounds": [[broadcast, compute,
 * both], ...]} in microseconds.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/start_page.h"

enum { kMostRounds = 1000, kWarmUp = 5 };

static int rank;
static struct start_page page;

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(const double* values, int n) {
  static double sorted[kMostRounds + kWarmUp];
  memcpy(sorted, values, sizeof(double) * (size_t)n);
  qsort(sorted, (size_t)n, sizeof(double), compare);
  return sorted[n / 2];
}

/* `steps` of a few nanoseconds, in registers. Volatile, so that it stays where it is called. */
static void compute(long steps) {
  static volatile double state = 1.0;
  double x = state;
  for (long i = 0; i < steps; i++) x = x * 0.999999 + 1e-6;
  state = x;
}

/* Steps per second of an undisturbed core: the best of some runs. */
static double steps_per_second(void) {
  const long steps = 2000000;
  double best = 0;
  for (int i = 0; i < 10; i++) {
    const double began = MPI_Wtime();
    compute(steps);
    const double rate = (double)steps / (MPI_Wtime() - began);
    if (rate > best) best = rate;
  }
  return best;
}

/* Both are optional: no buffer, no steps. Seconds of the slowest rank, on all ranks. */
static double once(char* buffer, int size, long steps) {
  MPI_Request request = MPI_REQUEST_NULL;
  start_page_wait(&page);
  if (buffer != NULL) MPI_Ibcast(buffer, size, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  if (steps > 0) compute(steps);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  start_page_finish(&page);
  return start_page_last(&page).slowest;
}

static void measure(int size, int rounds, double seconds, double rate) {
  static double alone[kMostRounds + kWarmUp];
  char* buffer = malloc((size_t)size);
  if (buffer == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(buffer, rank, (size_t)size);
  int n = 0;
  while (n < kWarmUp) alone[n++] = once(buffer, size, 0);
  if (rank == 0) printf("{\"size\": %d, \"rounds\": [", size);
  const double began = MPI_Wtime();
  int more = 1;
  for (int round = 0; more; round++) {
    alone[n++] = once(buffer, size, 0);
    const long steps = (long)(median(alone, n) * rate) + 1;
    const double computed = once(NULL, 0, steps);
    const double both = once(buffer, size, steps);
    if (rank == 0) {
      printf("%s[%.2f, %.2f, %.2f]", round > 0 ? ", " : "", alone[n - 1] * 1e6, computed * 1e6,
             both * 1e6);
      more = round + 1 < rounds && MPI_Wtime() - began < seconds;
    }
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) {
    printf("]}\n");
    fflush(stdout);
  }
  free(buffer);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  page = start_page_open(rank, ranks);
  int rounds = 100;
  double seconds = 10;
  char* sizes = NULL;
  for (int i = 1; i < argc; i++) {
    if (i + 1 < argc && strcmp(argv[i], "--rounds") == 0)
      rounds = atoi(argv[++i]);
    else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0)
      seconds = atof(argv[++i]);
    else
      sizes = argv[i];
  }
  if (sizes == NULL || rounds < 1 || rounds > kMostRounds) {
    if (rank == 0)
      fprintf(stderr, "usage: mpi_overlap [--rounds 1..%d] [--seconds S] SIZE[,SIZE...]\n",
              kMostRounds);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  double rate = steps_per_second(), slowest;
  MPI_Allreduce(&rate, &slowest, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  for (char* word = strtok(sizes, ","); word != NULL; word = strtok(NULL, ","))
    measure(atoi(word), rounds, seconds, slowest);
  MPI_Finalize();
  return 0;
}
