/* Reductions over all processes.
 *
 * The switches reduce integers, and minimum and maximum of all types: each process counts its rounds,
 * and all learn the sum and the largest count. Sums of floating-point numbers round, so they
 * depend on their order: each process gathers all numbers, and adds them in the order of ranks. So
 * such a sum has the same bits everywhere, too. Last come sums of long vectors, straight from and to
 * registered memory: the printed rate is of each vector's bytes, and times leave out the first sum.
 *
 *     reduce RANK RANKS DIRECTORY [DEVICE]
 *
 * on each of RANKS hosts. The directory is shared: members leave their names there.
 */
#include <mcast/reduce.h>
#include <time.h>

#include "examples/meeting.h"

enum { kRounds = 1000, kUnderWay = 4, kValues = 1 << 17, kSums = 5 };

typedef struct {
  operation_t operation;
  double numbers[kMostRanks];
} gather_t;

static double number_of(int rank, int round) { return 0.1 * (rank + 1) + round; }

/* Starts to gather a number of each rank. The library copies ours before the call returns. */
static void start(gather_t* one, mcast_group_h group, int rank, int ranks, int round) {
  const double own = number_of(rank, round);
  one->operation = begun();
  mcast_status_t status;
  while ((status = mcast_gather(group, &own, sizeof own, (size_t)rank * sizeof own, one->numbers,
                                (size_t)ranks * sizeof own, &one->operation.op)) ==
         MCAST_ERR_AGAIN) {
    mcast_progress(context);
  }
  check(status, "mcast_gather");
}

/* The sum of a round that has ended. Each rank can compute all numbers, and checks them. */
static double sum_of(const gather_t* one, int ranks, int round) {
  double sum = 0;
  for (int i = 0; i < ranks; ++i) {
    if (one->numbers[i] != number_of(i, round)) exit(1);
    sum += one->numbers[i];
  }
  return sum;
}

/* Reduces a value of each rank, and waits for the result. */
static int64_t reduced(mcast_group_h group, int64_t own, mcast_reduction_t operation) {
  int64_t all = 0;
  operation_t waited = begun();
  mcast_status_t status;
  while ((status = mcast_reduce(group, &own, NULL, &all, NULL, 1, operation, MCAST_INT64,
                                &waited.op)) == MCAST_ERR_AGAIN) {
    mcast_progress(context);
  }
  check(status, "mcast_reduce");
  wait_for(&waited);
  return all;
}

static double seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Adds up all ranks' vectors several times. Returns the least time. */
static double add_vectors(mcast_group_h group, int rank, int ranks) {
  const size_t bytes = kValues * sizeof(int64_t);
  int64_t* const own = malloc(bytes);
  int64_t* const all = malloc(bytes);
  if (own == NULL || all == NULL) exit(1);
  for (int64_t i = 0; i < kValues; ++i) own[i] = i * (rank + 1);
  mcast_mem_h own_memory, memory;
  check(mcast_mem_register(context, own, bytes, &own_memory), "mcast_mem_register");
  check(mcast_mem_register(context, all, bytes, &memory), "mcast_mem_register");
  double least = 1e9;
  for (int i = 0; i < kSums; ++i) {
    reduced(group, 1, MCAST_SUM); /* all begin at once */
    const double start = seconds();
    operation_t waited = begun();
    check(mcast_reduce(group, own, own_memory, all, memory, kValues, MCAST_SUM, MCAST_INT64,
                       &waited.op),
          "mcast_reduce");
    wait_for(&waited);
    const double took = seconds() - start;
    if (i > 0 && took < least) least = took;
  }
  for (int64_t i = 0; i < kValues; ++i) {
    if (all[i] != i * ranks * (ranks + 1) / 2) exit(1);
  }
  mcast_mem_deregister(own_memory);
  mcast_mem_deregister(memory);
  free(own);
  free(all);
  return least;
}

int main(int argc, char** argv) {
  check_arguments(argc, argv);
  const int rank = atoi(argv[1]), ranks = atoi(argv[2]);
  const char* directory = argv[3];

  open_context(argv[4]);
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = MCAST_LANE_REDUCTION;
  mcast_group_h group;
  check(mcast_group_create(context, &params, &group), "mcast_group_create");
  set_up(group, rank, ranks, directory);

  static gather_t gathers[kUnderWay];
  double sum = 0;
  for (int i = 0; i < kRounds + kUnderWay; ++i) {
    gather_t* const one = &gathers[i % kUnderWay];
    if (i >= kUnderWay) {
      wait_for(&one->operation);
      sum = sum_of(one, ranks, i - kUnderWay);
    }
    if (i < kRounds) start(one, group, rank, ranks, i);
  }
  const int64_t done = (int64_t)kRounds * (rank + 1);
  const int64_t total = reduced(group, done, MCAST_SUM);
  const int64_t largest = reduced(group, done, MCAST_MAX);
  if (total != (int64_t)kRounds * ranks * (ranks + 1) / 2) exit(1);
  if (largest != (int64_t)kRounds * ranks) exit(1);
  printf("rank %d: the last sum is %.17g; counted %lld, the largest %lld\n", rank, sum,
         (long long)total, (long long)largest);
  const double least = add_vectors(group, rank, ranks);
  printf("rank %d: %d MiB of int64 in %.2f ms, %.2f GB/s\n", rank, kValues * 8 >> 20, 1e3 * least,
         kValues * 8 / least * 1e-9);
  finish(group, rank, ranks, directory);
  mcast_context_destroy(context);
  return 0;
}
