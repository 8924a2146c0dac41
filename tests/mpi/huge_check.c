/* One broadcast of more bytes than an int counts, as blocks of 4 KiB, from rank 0.
 *
 *   huge_check [--bytes N]
 */
#include "tests/mpi/pattern.h"

enum { kBlock = 4096 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const size_t bytes = (size_t)atoll(option(argc, argv, "--bytes", "2200000000")) / kBlock * kBlock;
  unsigned char* memory = get_memory(bytes);
  int rank, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype block;
  MPI_Type_contiguous(kBlock, MPI_BYTE, &block);
  MPI_Type_commit(&block);
  if (rank == 0) {
    fill(memory, bytes, 9);
  } else {
    memset(memory, 0, bytes);
  }
  MPI_Bcast(memory, (int)(bytes / kBlock), block, 0, MPI_COMM_WORLD);
  const size_t at = check(memory, bytes, 9);
  if (at != bytes) {
    fprintf(stderr, "huge_check: rank %d: byte %zu is wrong\n", rank, at);
    wrong = 1;
  }
  MPI_Type_free(&block);
  free(memory);
  return finish(wrong, "blocks of 4 KiB", (long)(bytes / kBlock));
}
