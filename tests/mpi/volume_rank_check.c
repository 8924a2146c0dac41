/* A rank that broadcasts by MPI also writes a replicated volume: two users of libmcast in one
 * process, each with its own settings and thread.
 *
 *   volume_rank_check --volume NAME --replicas HOST:PORT,... [--rounds N]
 *
 * Rank 0 has the volume. Each round's writes are in flight during the round's broadcasts and are
 * read back after them. Exit 0 and a line "ok: ..." if all bytes were right.
 */
#include <cepheus/volume.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/mpi/pattern.h"

enum { kSmall = 2000, kLarge = 300000, kWrites = 8, kWriteBytes = 65536 };

static cepheus_volume_h volume;
static atomic_int under_way, failure;

static void must(int error, const char* what) {
  if (error == 0) return;
  fprintf(stderr, "rank 0: %s: %s\n", what, strerror(-error));
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void open_volume(int argc, char** argv) {
  cepheus_volume_params_t params = CEPHEUS_VOLUME_PARAMS_INIT;
  params.volume = option(argc, argv, "--volume", "v");
  params.replicas = option(argc, argv, "--replicas", NULL);
  params.open_timeout_ms = 60000; /* a busy machine must not look like a broken fabric */
  char error[512] = "";
  const int code = cepheus_volume_open(&params, &volume, error, sizeof error);
  must(code, error[0] != 0 ? error : "cepheus_volume_open");
}

static void on_done(void* arg, int error) {
  (void)arg;
  if (error != 0) atomic_store(&failure, error);
  atomic_fetch_sub(&under_way, 1);
}

static void wait_for_volume(void) {
  while (atomic_load(&under_way) > 0) sched_yield();
  must(atomic_load(&failure), "a request of the volume");
}

static uint64_t key_of(int round, int write) { return mix((uint64_t)(round * kWrites + write)); }

static void start_writes(unsigned char* blocks, int round) {
  for (int i = 0; i < kWrites; i++) {
    fill(blocks + i * kWriteBytes, kWriteBytes, key_of(round, i));
    atomic_fetch_add(&under_way, 1);
    must(cepheus_volume_write(volume, blocks + i * kWriteBytes, kWriteBytes,
                              (uint64_t)i * kWriteBytes, 0, on_done, NULL),
         "cepheus_volume_write");
  }
}

static int check_writes(unsigned char* blocks, int round) {
  memset(blocks, 0, kWrites * kWriteBytes);
  for (int i = 0; i < kWrites; i++) {
    atomic_fetch_add(&under_way, 1);
    must(cepheus_volume_read(volume, blocks + i * kWriteBytes, kWriteBytes,
                             (uint64_t)i * kWriteBytes, 0, on_done, NULL),
         "cepheus_volume_read");
  }
  wait_for_volume();
  int wrong = 0;
  for (int i = 0; i < kWrites; i++) {
    if (check(blocks + i * kWriteBytes, kWriteBytes, key_of(round, i)) == kWriteBytes) continue;
    fprintf(stderr, "rank 0: round %d, write %d is wrong\n", round, i);
    wrong = 1;
  }
  return wrong;
}

int main(int argc, char** argv) {
  const int rounds = atoi(option(argc, argv, "--rounds", "20"));
  int rank, size, wrong = 0;
  start_mpi(&argc, &argv, &rank, &size);
  unsigned char *memory = get_memory(kLarge), *blocks = get_memory(kWrites * kWriteBytes);
  if (rank == 0) open_volume(argc, argv);
  for (int round = 0; round < rounds; round++) {
    const uint64_t key = mix((uint64_t)(1000 + round));
    if (rank == 0) start_writes(blocks, round);
    wrong |= broadcast_and_check(memory, kSmall, key, round % size, MPI_COMM_WORLD);
    wrong |= broadcast_and_check(memory, kLarge, key + 1, round % size, MPI_COMM_WORLD);
    if (rank != 0) continue;
    wait_for_volume();
    wrong |= check_writes(blocks, round);
  }
  if (rank == 0) cepheus_volume_close(volume);
  wrong |= broadcast_and_check(memory, kLarge, mix(7), size - 1, MPI_COMM_WORLD);
  free(blocks);
  free(memory);
  return finish(wrong, "rounds", rounds);
}
