/* A communicator that the program names after its first broadcast. Plain MPI. */
#include "tests/mpi/pattern.h"

enum { kBytes = 1000, kCount = 6 };

int main(int argc, char** argv) {
  int rank, size, wrong = 0;
  start_mpi(&argc, &argv, &rank, &size);
  unsigned char memory[kBytes];
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "first name");
  for (int i = 0; i < kCount; ++i) {
    wrong |= broadcast_and_check(memory, kBytes, (uint64_t)i, 0, comm);
    MPI_Comm_set_name(comm, "second name");
  }
  MPI_Comm_free(&comm);
  return finish(wrong, "broadcasts", kCount);
}
