/* One sender, the same bytes to all others: by messages, then by multicast WRITE into their memory.
 *
 *     sender_stream RANK RANKS DIRECTORY [DEVICE]
 *
 * on each of RANKS hosts, rank 0 being the sender of a sender group; $STREAM_MIB (default 8) MiB go each way. The directory is
 * shared: members leave their names and regions there, and that they are done. Receivers compare every byte.
 */
#define _POSIX_C_SOURCE 200809L
#include <mcast/senders.h>
#include <string.h>
#include <time.h>

#include "examples/meeting.h"

enum {
  kRegion = 1,
  kBlock = 1 << 20,
  kSlots = 8,    /* blocks of a region, and of what is posted or under way */
  kReceives = 4, /* posted at a time: a slot is compared before it is written to again */
  kPattern = 1 << 16
};

/* Block `number` of the stream begins here: all blocks differ, at every offset. */
static unsigned char pattern[kBlock + kPattern];
static const unsigned char* block(unsigned number) { return pattern + number * 4099u % kPattern; }

static void make_pattern(void) {
  unsigned long long x = 88172645463325252ull;
  for (size_t i = 0; i < sizeof pattern; ++i) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    pattern[i] = (unsigned char)(x >> 32);
  }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void send_all(mcast_group_h group, mcast_mem_h mem, unsigned blocks, int by_write) {
  static operation_t operations[kSlots];
  const double start = seconds();
  for (unsigned i = 0; i < kSlots; ++i) {
    operations[i] = begun();
    operations[i].is_done = 1;
  }
  for (unsigned i = 0; i < blocks; ++i) {
    operation_t* const operation = &operations[i % kSlots];
    wait_for(operation);
    operation->is_done = 0;
    const uint32_t imm = i;
    mcast_status_t status;
    do {
      status = by_write ? mcast_write(group, block(i), kBlock, mem, kRegion,
                                      (uint64_t)(i % kSlots) * kBlock, &imm, &operation->op)
                        : mcast_send(group, block(i), kBlock, mem, imm, &operation->op);
      if (status == MCAST_ERR_AGAIN) mcast_progress(context);
    } while (status == MCAST_ERR_AGAIN);
    check(status, by_write ? "mcast_write" : "mcast_send");
  }
  for (unsigned i = 0; i < kSlots; ++i) wait_for(&operations[i]);
  printf("%s: %u MiB at %.1f MiB/s\n", by_write ? "WRITE" : "SEND", blocks,
         blocks / (seconds() - start));
}

/* Bytes of `there` that are not those of the block. */
static size_t differs(const unsigned char* there, unsigned number) {
  if (memcmp(there, block(number), kBlock) == 0) return 0;
  fprintf(stderr, "block %u is not what was sent\n", number);
  return 1;
}

static size_t receive_all(mcast_group_h group, mcast_mem_h mem, unsigned char* memory,
                          unsigned blocks, int by_write) {
  static operation_t operations[kReceives];
  size_t wrong = 0;
  const unsigned ahead = blocks < kReceives ? blocks : kReceives;
  for (unsigned i = 0; i < blocks + ahead; ++i) {
    operation_t* const operation = &operations[i % ahead];
    if (i >= ahead) { /* the receive before in its place */
      const unsigned number = i - ahead;
      wait_for(operation);
      wrong += operation->imm != number;
      wrong +=
          differs(memory + (size_t)(by_write ? number % kSlots : number % ahead) * kBlock, number);
    }
    if (i >= blocks) continue;
    *operation = (operation_t){{on_done, NULL}, 0, 0};
    check(by_write ? mcast_recv(group, NULL, 0, NULL, &operation->op)
                   : mcast_recv(group, memory + (size_t)(i % ahead) * kBlock, kBlock, mem,
                                &operation->op),
          "mcast_recv");
  }
  return wrong;
}

/* The leader passes the regions that all others have published. */
static void set_up_sender_group(mcast_group_h group, int rank, int ranks, const char* directory) {
  static mcast_member_t names[kMostRanks];
  static mcast_region_t regions[kMostRanks];
  size_t count = 1;
  check(mcast_group_member(group, &names[rank]), "mcast_group_member");
  if (rank != 0) {
    check(mcast_group_regions(group, &regions[rank], &count), "mcast_group_regions");
    leave_bytes(directory, "region", rank, &regions[rank], sizeof regions[rank]);
    leave(directory, "name", rank, &names[rank]);
  } else {
    for (int i = 1; i < ranks; ++i) {
      names[i] = find(directory, "name", i);
      find_bytes(directory, "region", i, &regions[i], sizeof regions[i]);
    }
    check(mcast_group_lead_regions(group, names, (size_t)ranks, regions + 1, (size_t)ranks - 1),
          "mcast_group_lead_regions");
  }
  wait_until_active(group);
}

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5) return 2;
  const int rank = atoi(argv[1]), ranks = atoi(argv[2]);
  const char* directory = argv[3];
  const char* const mib = getenv("STREAM_MIB");
  const int requested = mib == NULL ? 8 : atoi(mib);
  if (ranks < 2 || ranks > kMostRanks || rank < 0 || rank >= ranks || requested < 1) return 2;
  const unsigned blocks = (unsigned)requested;
  make_pattern();
  unsigned char* const memory = malloc((size_t)2 * kSlots * kBlock);
  if (memory == NULL) return 1;

  open_context(argv[4]);
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = MCAST_LANE_BULK;
  params.sender_group = 1;
  params.virtual_qpn = MCAST_CHOSEN_QPN_FIRST; /* the only program of its host */
  mcast_group_h group;
  check(mcast_group_create(context, &params, &group), "mcast_group_create");
  mcast_mem_h mem;
  check(rank == 0 ? mcast_mem_register(context, pattern, sizeof pattern, &mem)
                  : mcast_mem_register(context, memory, (size_t)kSlots * kBlock, &mem),
        "mcast_mem_register");
  unsigned char* const written = memory + (size_t)kSlots * kBlock;
  check(mcast_region_publish(group, kRegion, written, (size_t)kSlots * kBlock),
        "mcast_region_publish");
  set_up_sender_group(group, rank, ranks, directory);

  size_t wrong = 0;
  for (int by_write = 0; by_write < 2; ++by_write) {
    if (rank == 0) {
      send_all(group, mem, blocks, by_write);
    } else {
      wrong += receive_all(group, mem, by_write ? written : memory, blocks, by_write);
    }
  }
  if (rank != 0) printf("rank %d: %u blocks each way, %zu wrong\n", rank, blocks, wrong);
  finish(group, rank, ranks, directory);
  mcast_mem_deregister(mem);
  mcast_context_destroy(context);
  free(memory);
  return wrong == 0 ? 0 : 1;
}
