/* Whether MPI's own messages arrive whole: broadcasts from every root, reductions and exchanges
 * around the ring, from a byte to a megabyte. Prints "ok: ..." on rank 0; any wrong byte ends the
 * job. */
#include "tests/mpi/pattern.h"

static const int kSizes[] = {1, 8, 1000, 4096, 20000, 65536, 1 << 20};
enum { kSizeCount = sizeof kSizes / sizeof kSizes[0] };

static uint64_t key_of(int rank, int size) { return mix((uint64_t)rank) + (uint64_t)size; }

static void must_be(const unsigned char* data, int rank, int size, const char* what) {
  const size_t at = check(data, (size_t)size, key_of(rank, size));
  if (at == (size_t)size) return;
  fprintf(stderr, "%s of %d bytes from rank %d: byte %zu is wrong\n", what, size, rank, at);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void reduce(int* values, int count, int rank, int ranks) {
  for (int i = 0; i < count; ++i) values[i] = rank + i;
  MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) {
    if (values[i] == ranks * (ranks - 1) / 2 + ranks * i) continue;
    fprintf(stderr, "sum of %d numbers: number %d is wrong\n", count, i);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

int main(int argc, char** argv) {
  int rank, ranks;
  start_mpi(&argc, &argv, &rank, &ranks);
  const int largest = kSizes[kSizeCount - 1];
  unsigned char *mine = get_memory((size_t)largest), *others = get_memory((size_t)largest);
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  for (int i = 0; i < kSizeCount; ++i) {
    const int size = kSizes[i];
    fill(mine, (size_t)size, key_of(rank, size));
    MPI_Sendrecv(mine, size, MPI_BYTE, next, i, others, size, MPI_BYTE, previous, i, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    must_be(others, previous, size, "sendrecv");
    for (int root = 0; root < ranks; ++root) {
      fill(others, (size_t)size, key_of(rank, size));
      MPI_Bcast(others, size, MPI_BYTE, root, MPI_COMM_WORLD);
      must_be(others, root, size, "bcast");
    }
    if (size % (int)sizeof(int) == 0) reduce((int*)others, size / (int)sizeof(int), rank, ranks);
  }
  if (rank == 0) printf("ok: %d sizes among %d ranks\n", (int)kSizeCount, ranks);
  free(mine);
  free(others);
  MPI_Finalize();
  return 0;
}
