/* Broadcasts on a communicator while MPI has no context for another one: rank 1 has taken them all. */
#include <unistd.h>

#include "tests/mpi/pattern.h"

/* MPICH 4.0 has some 2,000, Open MPI 4.1 64 Ki. */
enum { kBytes = 5000, kCount = 12, kMost = 70000 };

/* The others leave the processors to rank 1: Open MPI takes a minute. */
static void await_rank_1(int rank, int size) {
  for (int each = 0; rank == 1 && each < size; each++) {
    if (each != 1) MPI_Send(NULL, 0, MPI_BYTE, each, 0, MPI_COMM_WORLD);
  }
  for (int sent = 0; rank != 1 && !sent;) {
    MPI_Iprobe(1, 0, MPI_COMM_WORLD, &sent, MPI_STATUS_IGNORE);
    if (!sent) usleep(10000);
  }
  if (rank != 1) MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  int rank, size, wrong = 0;
  start_mpi(&argc, &argv, &rank, &size);
  MPI_Comm comm, taken;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int i = 0; i < kMost && rank == 1 && MPI_Comm_dup(MPI_COMM_SELF, &taken) == MPI_SUCCESS;
       i++) {
  }
  await_rank_1(rank, size);
  unsigned char* memory = get_memory(kBytes);
  for (int i = 0; i < kCount; i++)
    wrong |= broadcast_and_check(memory, kBytes, mix((uint64_t)i), i % size, comm);
  free(memory);
  const int code = conclude(wrong, "broadcasts", kCount);
  MPI_Finalize();
  return code;
}
