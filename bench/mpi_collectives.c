/* Times MPI_Barrier, MPI_Allreduce, MPI_Reduce and MPI_Allgather by a plan.
 *
 *   mpirun ... mpi_collectives [--seconds S] [--switch PID] [--costs] --plan FILE
 *
 * A line of the plan is "COLLECTIVE SIZE ALGORITHM": barrier, allreduce, allreduce_int64, reduce or
 * allgather; bytes of one rank, a multiple of 8; coll/tuned's number, which needs
 * coll_tuned_use_dynamic_rules=1. Such a line has a communicator of its own, because coll/tuned reads
 * its parameters when one is made. With 0 MPI_COMM_WORLD is used as it is. Reductions add doubles, or
 * int64_t by allreduce_int64; the root is rank 0.
 *
 * One JSON object per line of the plan: {"collective", "size", "algorithm", ...}, with the figures of
 * timed_calls.h. The results of the first calls are checked.
 */
#define _GNU_SOURCE
#include <stdint.h>

#include "bench/timed_calls.h"

struct collective {
  char name[16];
  long size;
  int algorithm;
  MPI_Comm comm;
  void *send, *receive;
};

static int is_of_integers(const struct collective* it) {
  return strcmp(it->name, "allreduce_int64") == 0;
}

static void make_call(const void* what, int number) {
  const struct collective* it = what;
  const int n = (int)(it->size / (long)sizeof(double));
  (void)number;
  if (strcmp(it->name, "barrier") == 0)
    MPI_Barrier(it->comm);
  else if (strcmp(it->name, "allreduce") == 0)
    MPI_Allreduce(it->send, it->receive, n, MPI_DOUBLE, MPI_SUM, it->comm);
  else if (is_of_integers(it))
    MPI_Allreduce(it->send, it->receive, n, MPI_INT64_T, MPI_SUM, it->comm);
  else if (strcmp(it->name, "reduce") == 0)
    MPI_Reduce(it->send, it->receive, n, MPI_DOUBLE, MPI_SUM, 0, it->comm);
  else if (strcmp(it->name, "allgather") == 0)
    MPI_Allgather(it->send, n, MPI_DOUBLE, it->receive, n, MPI_DOUBLE, it->comm);
  else
    die("unknown collective ", it->name);
}

/* Value `i` of a rank's contribution to a call. Sums of them are exact. */
static double value_of(int number, int from, long i) {
  return number + 31 * from + (double)(i % 97);
}

static void set_value(const struct collective* it, void* values, long i, double value) {
  if (is_of_integers(it))
    ((int64_t*)values)[i] = (int64_t)value;
  else
    ((double*)values)[i] = value;
}

static double got(const struct collective* it, long i) {
  return is_of_integers(it) ? (double)((int64_t*)it->receive)[i] : ((double*)it->receive)[i];
}

static double expected(const struct collective* it, int number, long i) {
  const long n = it->size / (long)sizeof(double);
  if (strcmp(it->name, "allgather") == 0) return value_of(number, (int)(i / n), i % n);
  double sum = 0;
  for (int from = 0; from < ranks; from++) sum += value_of(number, from, i);
  return sum;
}

static void warm_up(const struct collective* it) {
  const long n = it->size / (long)sizeof(double);
  const int has_result = strcmp(it->name, "reduce") != 0 || rank == 0;
  const long results = strcmp(it->name, "allgather") == 0 ? n * ranks : n;
  for (int call = 0; call < kWarmUp; call++) {
    for (long i = 0; i < n; i++) set_value(it, it->send, i, value_of(call, rank, i));
    for (long i = 0; i < results; i++) set_value(it, it->receive, i, -1);
    make_call(it, call);
    for (long i = 0; has_result && i < results; i++) {
      if (got(it, i) == expected(it, call, i)) continue;
      fprintf(stderr, "mpi_collectives: rank %d has a wrong value %ld of %ld by %s, algorithm %d\n",
              rank, i, results, it->name, it->algorithm);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
  }
}

static void measure(struct collective* it, double budget, int switch_pid) {
  char parameter[64], head[96];
  it->comm = MPI_COMM_WORLD;
  if (it->algorithm != 0) {
    snprintf(parameter, sizeof parameter, "coll_tuned_%s_algorithm",
             is_of_integers(it) ? "allreduce" : it->name);
    set_parameter(parameter, it->algorithm);
    MPI_Comm_dup(MPI_COMM_WORLD, &it->comm);
    set_parameter(parameter, 0);
  }
  it->send = malloc((size_t)it->size + 1);
  const int is_gather = strcmp(it->name, "allgather") == 0;
  it->receive = malloc((size_t)it->size * (size_t)(is_gather ? ranks : 1) + 1);
  if (strcmp(it->name, "barrier") != 0) warm_up(it);
  snprintf(head, sizeof head, "\"collective\": \"%s\", \"size\": %ld, \"algorithm\": %d", it->name,
           it->size, it->algorithm);
  measure_calls(make_call, it, budget, switch_pid, head);
  free(it->send);
  free(it->receive);
  if (it->algorithm != 0) MPI_Comm_free(&it->comm);
}

int main(int argc, char** argv) {
  timed_calls_open("mpi_collectives", &argc, &argv);
  struct timed_options options = {0.5, 0, NULL};
  for (int i = 1; i < argc; i++) {
    if (!take_option(&options, argc, argv, &i)) die("unknown option ", argv[i]);
  }
  FILE* file = options.plan != NULL ? fopen(options.plan, "r") : NULL;
  if (file == NULL) die("can't open the plan; pass --plan FILE", "");
  if (costs_only && rank == 0 && options.switch_pid != 0)
    switch_events = event_counts_open(options.switch_pid);
  struct collective it;
  while (fscanf(file, "%15s %ld %d", it.name, &it.size, &it.algorithm) == 3)
    measure(&it, options.seconds, options.switch_pid);
  fclose(file);
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
