/* Broadcasts on a communicator while MPI has no context for another one: rank 1 has taken them all. */
#include "tests/mpi/pattern.h"

/* MPICH 4.0 has some 2,000, Open MPI 4.1 64 Ki. */
enum { kBytes = 5000, kCount = 12, kMost = 70000 };

int main(int argc, char** argv) {
  int rank, size, wrong = 0;
  start_mpi(&argc, &argv, &rank, &size);
  MPI_Comm comm, taken;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int i = 0; i < kMost && rank == 1 && MPI_Comm_dup(MPI_COMM_SELF, &taken) == MPI_SUCCESS;
       i++) {
  }
  unsigned char* memory = get_memory(kBytes);
  for (int i = 0; i < kCount; i++)
    wrong |= broadcast_and_check(memory, kBytes, mix((uint64_t)i), i % size, comm);
  free(memory);
  const int code = conclude(wrong, "broadcasts", kCount);
  MPI_Finalize();
  return code;
}
