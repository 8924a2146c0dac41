/* Times MPI_Bcast: for each size, the slowest rank's time of each call, then median, 10th and 90th
 * percentile.
 *
 *   mpirun ... mpi_bcast SIZE[,SIZE...] [SECONDS_PER_SIZE] [--rotate]
 *
 * One JSON object a line on rank 0's standard output: {"size", "median", "p10", "p90", "n"}, times
 * in microseconds.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double percentile(const double* sorted, int n, double p) {
  return sorted[(int)(p * (n - 1) + 0.5)];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 2) {
    if (rank == 0)
      fprintf(stderr, "usage: mpi_bcast SIZE[,SIZE...] [SECONDS_PER_SIZE] [--rotate]\n");
    MPI_Finalize();
    return 2;
  }
  double budget = 0.5;
  int rotate = 0;
  for (int i = 2; i < argc; i++) {
    if (strcmp(argv[i], "--rotate") == 0)
      rotate = 1;
    else
      budget = atof(argv[i]);
  }
  char* list = strdup(argv[1]);
  for (char* word = strtok(list, ","); word != NULL; word = strtok(NULL, ",")) {
    long size = atol(word);
    char* buffer = malloc(size > 0 ? (size_t)size : 1);
    memset(buffer, rank, (size_t)size);
    double* times = malloc(sizeof(double) * 20000);
    int n = 0, more = 1;
    double start = 0;
    for (int i = -3; more && n < 20000; i++) {
      int root = rotate ? ((i % ranks) + ranks) % ranks : 0;
      MPI_Barrier(MPI_COMM_WORLD);
      if (i == 0) start = MPI_Wtime();
      double t = MPI_Wtime();
      MPI_Bcast(buffer, (int)size, MPI_BYTE, root, MPI_COMM_WORLD);
      t = MPI_Wtime() - t;
      double slowest;
      MPI_Reduce(&t, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      if (i < 0) continue;
      if (rank == 0) times[n] = slowest * 1e6;
      n++;
      /* Rank 0's clock decides for all; every 8 calls, so that asking does not disturb the timing.
       */
      if (n % 8 == 0 || size >= 1 << 20) {
        more = rank == 0 ? (MPI_Wtime() - start < budget || n < 8) : 0;
        int flag = more;
        MPI_Allreduce(&flag, &more, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      }
    }
    if (rank == 0) {
      qsort(times, (size_t)n, sizeof(double), compare);
      printf("{\"size\": %ld, \"median\": %.2f, \"p10\": %.2f, \"p90\": %.2f, \"n\": %d}\n", size,
             percentile(times, n, 0.5), percentile(times, n, 0.1), percentile(times, n, 0.9), n);
      fflush(stdout);
    }
    free(times);
    free(buffer);
  }
  free(list);
  MPI_Finalize();
  return 0;
}
