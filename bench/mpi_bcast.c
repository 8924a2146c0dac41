/* Times MPI_Bcast by a plan: which algorithm of Open MPI, which segment size, which message size.
 *
 *   mpirun ... mpi_bcast [OPTIONS] SIZE[,SIZE...]
 *   mpirun ... mpi_bcast [OPTIONS] --plan FILE
 *
 * Options: --seconds S for each size, --switch PID, --rotate the root from call to call, --costs,
 * --circulant BLOCK: broadcast by a circulant graph of unicasts, in blocks of BLOCK bytes (0: one),
 * instead of MPI_Bcast.
 *
 * A line of a plan is "SIZE ALGORITHM SEGMENT FANOUT", in bytes and in coll/tuned's numbers, or -1
 * for a circulant graph. A plan needs coll_tuned_use_dynamic_rules=1. Each line has a communicator
 * of its own, because coll/tuned reads its parameters when one is made. Without a plan
 * MPI_COMM_WORLD is used as it is.
 *
 * One JSON object per line of the plan: {"size", "algorithm", "segment", "fanout", ...}, with the
 * figures of timed_calls.h. The bytes of the first calls are compared with the root's.
 */
#define _GNU_SOURCE
#include "bench/circulant_broadcast.h"
#include "bench/timed_calls.h"

enum { kCirculant = -1 };

struct step {
  long size;
  int algorithm, segment, fanout;
};
struct broadcast {
  const struct step* step;
  MPI_Comm comm;
  char* buffer;
};

static int rotate;

static MPI_Comm communicator_for(const struct step* step) {
  MPI_Comm comm;
  set_parameter("coll_tuned_bcast_algorithm", step->algorithm == kCirculant ? 0 : step->algorithm);
  set_parameter("coll_tuned_bcast_algorithm_segmentsize", step->segment);
  set_parameter("coll_tuned_bcast_algorithm_chain_fanout", step->fanout);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  set_parameter("coll_tuned_bcast_algorithm", 0);
  set_parameter("coll_tuned_bcast_algorithm_segmentsize", 0);
  return comm;
}

static void broadcast(const struct step* step, char* buffer, int root, MPI_Comm comm) {
  if (step->algorithm == kCirculant)
    circulant_bcast(buffer, step->size, step->segment, root, comm);
  else
    MPI_Bcast(buffer, (int)step->size, MPI_BYTE, root, comm);
}

/* Byte `i` of the message of a call. Blocks and slots of any usual size differ by it. */
static char byte_of(int call, long i) { return (char)(i * 31 + i / 251 + call); }

/* Broadcasts once from each root that timed calls have, and compares the bytes. */
static void warm_up(const struct step* step, MPI_Comm comm, char* buffer) {
  for (int call = 0; call < kWarmUp || (rotate && call < ranks); call++) {
    const int root = rotate ? call % ranks : 0;
    for (long i = 0; i < step->size; i++) buffer[i] = rank == root ? byte_of(call, i) : 0;
    broadcast(step, buffer, root, comm);
    for (long i = 0; i < step->size; i++) {
      if (buffer[i] == byte_of(call, i)) continue;
      fprintf(stderr, "mpi_bcast: rank %d has a wrong byte %ld of %ld from root %d\n", rank, i,
              step->size, root);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
  }
}

static void make_call(const void* what, int number) {
  const struct broadcast* it = what;
  broadcast(it->step, it->buffer, rotate ? number % ranks : 0, it->comm);
}

static void measure(const struct step* step, MPI_Comm comm, double budget, int switch_pid) {
  const struct broadcast what = {step, comm, malloc(step->size > 0 ? (size_t)step->size : 1)};
  char head[128];
  snprintf(head, sizeof head, "\"size\": %ld, \"algorithm\": %d, \"segment\": %d, \"fanout\": %d",
           step->size, step->algorithm, step->segment, step->fanout);
  warm_up(step, comm, what.buffer);
  measure_calls(make_call, &what, budget, switch_pid, head);
  free(what.buffer);
}

int main(int argc, char** argv) {
  timed_calls_open("mpi_bcast", &argc, &argv);
  struct timed_options options = {0.5, 0, NULL};
  char* sizes = NULL;
  struct step step = {0, 0, 0, 0};
  for (int i = 1; i < argc; i++) {
    if (argv[i][0] != '-') {
      sizes = argv[i];
      continue;
    }
    if (strcmp(argv[i], "--rotate") == 0) {
      rotate = 1;
      continue;
    }
    if (take_option(&options, argc, argv, &i)) continue;
    if (strcmp(argv[i], "--circulant") != 0) die("unknown option ", argv[i]);
    step.algorithm = kCirculant;
    step.segment = atoi(argument_of(argc, argv, &i));
  }
  if ((options.plan == NULL) == (sizes == NULL))
    die("usage: mpi_bcast [--seconds S] [--switch PID] [--rotate] [--circulant BLOCK] "
        "SIZE[,SIZE...] | "
        "--plan FILE",
        "");
  if (costs_only && rank == 0 && options.switch_pid != 0)
    switch_events = event_counts_open(options.switch_pid);
  if (options.plan != NULL) {
    FILE* file = fopen(options.plan, "r");
    if (file == NULL) die("can't open ", options.plan);
    while (fscanf(file, "%ld %d %d %d", &step.size, &step.algorithm, &step.segment, &step.fanout) ==
           4) {
      MPI_Comm comm = communicator_for(&step);
      measure(&step, comm, options.seconds, options.switch_pid);
      MPI_Comm_free(&comm);
    }
    fclose(file);
  } else {
    for (char* word = strtok(sizes, ","); word != NULL; word = strtok(NULL, ",")) {
      step.size = atol(word);
      measure(&step, MPI_COMM_WORLD, options.seconds, options.switch_pid);
    }
  }
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
