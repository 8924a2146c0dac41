/* Rounds of a broadcast of one size from rotating roots and a reduction, every byte checked, until
 * it is stopped.
 *
 *   mpirun ... steady_check --size BYTES --meter FILE
 *
 * FILE is 16 bytes that rank 0 shares with an observer: the number of completed rounds, and whether
 * to stop (not 0), both as 64-bit integers of the machine. Rank 0 prints "started" after the first
 * ones. Exit 0 and a line "ok: ..." if all was right.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/mpi/pattern.h"

/* In every 16 bytes of a broadcast: another user that finds it has read foreign data. */
static const uint64_t MARK = 0x5EC4E7A55E1FB175ull;

static void mark(unsigned char* p, size_t n) {
  for (size_t i = 8; i + 8 <= n; i += 16) memcpy(p + i, &MARK, 8);
}

/* Replaces existing marks by the bytes that fill() puts in their place: check() finds others. */
static void unmark(unsigned char* p, size_t n, uint64_t key) {
  for (size_t i = 8; i + 8 <= n; i += 16) {
    const uint64_t word = mix(key + i);
    if (memcmp(p + i, &MARK, 8) == 0) memcpy(p + i, &word, 8);
  }
}

enum { kRounds = 16 };  /* between two checks whether to stop */
enum { kReduced = 64 }; /* numbers in a reduction */

/* Sums of all ranks. 0 if they are right, else 1 and a line on stderr. */
static int reduce(uint64_t key, int rank, int size) {
  uint64_t own[kReduced], sum[kReduced];
  for (uint64_t n = 0; n < kReduced; n++) own[n] = mix(key + n) + (uint64_t)rank;
  MPI_Allreduce(own, sum, kReduced, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  for (uint64_t n = 0; n < kReduced; n++) {
    if (sum[n] == mix(key + n) * (uint64_t)size + (uint64_t)(size * (size - 1) / 2)) continue;
    fprintf(stderr, "rank %d: number %d of a reduction is wrong\n", rank, (int)n);
    return 1;
  }
  return 0;
}

struct meter {
  _Atomic uint64_t done, stop;
};

static struct meter* map_meter(const char* path) {
  const int fd = open(path, O_RDWR);
  void* memory = MAP_FAILED;
  if (fd >= 0) memory = mmap(NULL, sizeof(struct meter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    perror(path);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  close(fd);
  return memory;
}

int main(int argc, char** argv) {
  int rank, size, wrong = 0, stop = 0;
  start_mpi(&argc, &argv, &rank, &size);
  const size_t bytes = (size_t)atoll(option(argc, argv, "--size", "65536"));
  struct meter* meter = rank == 0 ? map_meter(option(argc, argv, "--meter", "")) : NULL;
  unsigned char* memory = get_memory(bytes);
  long i = 0;
  while (!stop) {
    for (const long end = i + kRounds; i < end; i++) {
      const uint64_t key = mix((uint64_t)i);
      const int root = (int)(i % size);
      before_broadcast(memory, bytes, key, root, MPI_COMM_WORLD);
      if (rank == root) mark(memory, bytes);
      MPI_Bcast(memory, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
      unmark(memory, bytes, key);
      wrong |= after_broadcast(memory, bytes, key, root, MPI_COMM_WORLD);
      wrong |= reduce(key, rank, size);
      if (meter != NULL) atomic_store(&meter->done, (uint64_t)i + 1);
    }
    if (meter != NULL && i == kRounds) print_now("started");
    if (meter != NULL) stop = atomic_load(&meter->stop) != 0;
    MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  free(memory);
  return finish(wrong, "rounds", i);
}
