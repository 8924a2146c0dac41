/* Multicast WRITE per request: each member's memory has another address, which each WRITE names.
 *
 *     write_to RANK RANKS DIRECTORY [DEVICE]
 *
 * on each of RANKS hosts of a fabric with write_mode = "per-request". The directory is shared:
 * members leave their names and targets there. Rank 0 and the last rank write in turns, each time
 * at another offset.
 */
#include <mcast/write.h>
#include <string.h>

#include "examples/meeting.h"

enum { kMemory = 512 << 10, kTurns = 8 };

/* Turn `t` writes size_of(t) bytes of one value at offset_of(t) from each member's beginning. */
static size_t size_of(int t) { return t % 3 == 0 ? 100 : 20000 + 7 * (size_t)t; }
static size_t offset_of(int t) { return (size_t)t * 24000 + 3; }
static size_t beginning_of(int rank) { return (size_t)rank * 4100 + 1; }

static void write_to_all(mcast_group_h group, int rank, int ranks, int t,
                         const mcast_target_t* all) {
  static uint8_t data[kMemory];
  memset(data, t + 1, size_of(t));
  mcast_target_t targets[kMostRanks];
  size_t count = 0;
  for (int i = 0; i < ranks; ++i) {
    if (i == rank) continue;
    check(mcast_target_part(&all[i], offset_of(t), size_of(t), &targets[count++]),
          "mcast_target_part");
  }
  operation_t write = begun();
  const uint32_t imm = (uint32_t)t;
  mcast_status_t status;
  while ((status = mcast_write_to(group, data, size_of(t), NULL, targets, count, &imm,
                                  &write.op)) == MCAST_ERR_AGAIN) {
    mcast_progress(context);
  }
  check(status, "mcast_write_to");
  wait_for(&write);
}

/* The number of wrong bytes. */
static size_t errors_in(const uint8_t* memory, int rank, int last) {
  static uint8_t expected[kMemory];
  for (int t = 0; t < kTurns; ++t) {
    const int writer = t % 2 == 0 ? 0 : last;
    if (writer != rank) memset(expected + beginning_of(rank) + offset_of(t), t + 1, size_of(t));
  }
  size_t errors = 0;
  for (size_t i = 0; i < kMemory; ++i) errors += memory[i] != expected[i];
  return errors;
}

int main(int argc, char** argv) {
  check_arguments(argc, argv);
  const int rank = atoi(argv[1]), ranks = atoi(argv[2]), last = ranks - 1;
  const char* directory = argv[3];
  static uint8_t memory[kMemory];

  open_context(argv[4]);
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = MCAST_LANE_BULK;
  params.per_request = 1;
  mcast_group_h group;
  check(mcast_group_create(context, &params, &group), "mcast_group_create");
  mcast_mem_h registered;
  check(mcast_mem_register_writable(context, memory, sizeof memory, &registered),
        "mcast_mem_register_writable");

  mcast_target_t targets[kMostRanks];
  const size_t begin = beginning_of(rank);
  check(mcast_mem_target(registered, memory + begin, sizeof memory - begin, &targets[rank]),
        "mcast_mem_target");
  leave_bytes(directory, "target", rank, &targets[rank], sizeof targets[rank]);
  set_up(group, rank, ranks, directory);
  for (int i = 0; i < ranks; ++i)
    find_bytes(directory, "target", i, &targets[i], sizeof targets[i]);

  for (int t = 0; t < kTurns; ++t) {
    if (rank == (t % 2 == 0 ? 0 : last)) {
      write_to_all(group, rank, ranks, t, targets);
    } else {
      operation_t notice = begun();
      check(mcast_recv(group, NULL, 0, NULL, &notice.op), "mcast_recv");
      wait_for(&notice);
    }
  }

  const size_t errors = errors_in(memory, rank, last);
  printf("rank %d: %zu bytes are wrong\n", rank, errors);
  finish(group, rank, ranks, directory);
  mcast_mem_deregister(registered);
  mcast_context_destroy(context);
  return errors == 0 ? 0 : 1;
}
