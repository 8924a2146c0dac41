/* Times MPI_Bcast by a plan: which algorithm of Open MPI, which segment size, which message size.
 *
 *   mpirun ... mpi_bcast [OPTIONS] SIZE[,SIZE...]
 *   mpirun ... mpi_bcast [OPTIONS] --plan FILE
 *
 * Options: --seconds S for each size, --switch PID, --rotate the root from call to call.
 *
 * A line of a plan is "SIZE ALGORITHM SEGMENT FANOUT", in bytes and in coll/tuned's numbers; it
 * needs coll_tuned_use_dynamic_rules=1, and has a communicator of its own, because coll/tuned reads
 * its parameters when one is made. Without a plan MPI_COMM_WORLD is used as it is.
 *
 * One JSON object per line of the plan on rank 0's standard output: {"size", "algorithm",
 * "segment", "fanout", "median", "p10", "p90", "n", "cpu"}: times in microseconds; "cpu" is the
 * time of all ranks, and of the switch process PID, per call.
 *
 * All ranks start a call at one moment of the host's clock that they agree on before, and it takes
 * until the last has left: what a rank that starts late, because another has its core, finds done
 * already would count for nothing otherwise.
 */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { kMaxCalls = 20000, kWarmUp = 3, kLeastCalls = 5 };
static const double kNotice = 30e-6; /* seconds from agreeing on a start to it */

struct step {
  long size;
  int algorithm, segment, fanout;
};

static int rank, ranks, rotate;

static void die(const char* what, const char* detail) {
  if (rank == 0) fprintf(stderr, "mpi_bcast: %s%s\n", what, detail);
  MPI_Finalize();
  exit(2);
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double percentile(const double* sorted, int n, double p) {
  return sorted[(int)(p * (n - 1) + 0.5)];
}

static double own_cpu_us(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
         (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/* Seconds; the same clock for all processes of a host, which MPI_Wtime need not be. */
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double start_together(void) {
  double start = now() + kNotice;
  MPI_Allreduce(MPI_IN_PLACE, &start, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  while (now() < start) sched_yield();
  return start;
}

/* Time on a core of another process's main thread. */
static double process_cpu_us(int pid) {
  if (pid == 0) return 0;
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
  FILE* file = fopen(path, "r");
  unsigned long long ns = 0;
  if (file == NULL || fscanf(file, "%llu", &ns) != 1) die("can't read ", path);
  fclose(file);
  return (double)ns / 1e3;
}

static void set_parameter(const char* name, int value) {
  int index, count;
  MPI_T_cvar_handle handle;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
      MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
    die("this Open MPI has no parameter ", name);
  if (MPI_T_cvar_write(handle, &value) != MPI_SUCCESS) die("can't set ", name);
  MPI_T_cvar_handle_free(&handle);
}

static MPI_Comm communicator_for(const struct step* step) {
  MPI_Comm comm;
  set_parameter("coll_tuned_bcast_algorithm", step->algorithm);
  set_parameter("coll_tuned_bcast_algorithm_segmentsize", step->segment);
  set_parameter("coll_tuned_bcast_algorithm_chain_fanout", step->fanout);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  set_parameter("coll_tuned_bcast_algorithm", 0);
  set_parameter("coll_tuned_bcast_algorithm_segmentsize", 0);
  return comm;
}

static void measure(const struct step* step, MPI_Comm comm, double budget, int switch_pid) {
  char* buffer = malloc(step->size > 0 ? (size_t)step->size : 1);
  double* times = malloc(sizeof(double) * kMaxCalls);
  memset(buffer, rank, (size_t)step->size);
  int n = 0, more = 1;
  double start = 0, cpu = 0, switch_cpu = 0;
  for (int i = -kWarmUp; more && n < kMaxCalls; i++) {
    if (i == 0) {
      start = now();
      cpu = own_cpu_us();
      if (rank == 0) switch_cpu = process_cpu_us(switch_pid);
    }
    double t = start_together();
    MPI_Bcast(buffer, (int)step->size, MPI_BYTE, rotate ? (i + kWarmUp) % ranks : 0, comm);
    t = now() - t;
    double slowest;
    MPI_Reduce(&t, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (i < 0) continue;
    if (rank == 0) times[n] = slowest * 1e6;
    n++;
    /* Rank 0's clock decides for all; every 8 calls, so that asking does not disturb the timing. */
    if (n % 8 == 0 || step->size >= 1 << 18) {
      more = rank == 0 && (now() - start < budget || n < kLeastCalls);
      MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
  }
  double all_cpu;
  cpu = own_cpu_us() - cpu;
  if (rank == 0) cpu += process_cpu_us(switch_pid) - switch_cpu;
  MPI_Reduce(&cpu, &all_cpu, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    qsort(times, (size_t)n, sizeof(double), compare);
    printf(
        "{\"size\": %ld, \"algorithm\": %d, \"segment\": %d, \"fanout\": %d, \"median\": %.2f, "
        "\"p10\": %.2f, "
        "\"p90\": %.2f, \"n\": %d, \"cpu\": %.2f}\n",
        step->size, step->algorithm, step->segment, step->fanout, percentile(times, n, 0.5),
        percentile(times, n, 0.1), percentile(times, n, 0.9), n, all_cpu / n);
    fflush(stdout);
  }
  free(times);
  free(buffer);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int provided;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  double budget = 0.5;
  int switch_pid = 0;
  const char* plan = NULL;
  char* sizes = NULL;
  for (int i = 1; i < argc; i++) {
    if (argv[i][0] != '-') {
      sizes = argv[i];
      continue;
    }
    if (strcmp(argv[i], "--rotate") == 0) {
      rotate = 1;
      continue;
    }
    if (i + 1 == argc) die("lacks its argument: ", argv[i]);
    if (strcmp(argv[i], "--seconds") == 0)
      budget = atof(argv[++i]);
    else if (strcmp(argv[i], "--switch") == 0)
      switch_pid = atoi(argv[++i]);
    else if (strcmp(argv[i], "--plan") == 0)
      plan = argv[++i];
    else
      die("unknown option ", argv[i]);
  }
  if ((plan == NULL) == (sizes == NULL))
    die("usage: mpi_bcast [--seconds S] [--switch PID] [--rotate] SIZE[,SIZE...] | --plan FILE",
        "");
  struct step step = {0, 0, 0, 0};
  if (plan != NULL) {
    FILE* file = fopen(plan, "r");
    if (file == NULL) die("can't open ", plan);
    while (fscanf(file, "%ld %d %d %d", &step.size, &step.algorithm, &step.segment, &step.fanout) ==
           4) {
      MPI_Comm comm = communicator_for(&step);
      measure(&step, comm, budget, switch_pid);
      MPI_Comm_free(&comm);
    }
    fclose(file);
  } else {
    for (char* word = strtok(sizes, ","); word != NULL; word = strtok(NULL, ",")) {
      step.size = atol(word);
      measure(&step, MPI_COMM_WORLD, budget, switch_pid);
    }
  }
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
