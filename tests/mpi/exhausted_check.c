/* Broadcasts on a communicator while MPI has no context for another one: rank 1 has taken them all. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/mpi/pattern.h"

/* MPICH 4.0 has some 2,000, Open MPI 4.1 64 Ki. */
enum { kBytes = 5000, kCount = 12, kMost = 70000 };

/* A lock of rank 1 keeps the others off the processors until it has taken all contexts: Open MPI takes a minute. */
static int locked_by_rank_1(int rank) {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC); /* one inode for all ranks */
  if (file < 0 || (rank == 1 && flock(file, LOCK_EX) != 0)) {
    perror("a lock of the program's file");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return file;
}

/* Rank 1 gives its lock back, the others wait for it. The test's time limit bounds the wait. */
static void await_rank_1(int rank, int file) {
  if (rank != 1 && flock(file, LOCK_SH) != 0) {
    perror("a lock of the program's file");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  close(file);
}

int main(int argc, char** argv) {
  int rank, size, wrong = 0;
  start_mpi(&argc, &argv, &rank, &size);
  MPI_Comm comm, taken;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  const int file = locked_by_rank_1(rank);
  for (int i = 0; i < kMost && rank == 1 && MPI_Comm_dup(MPI_COMM_SELF, &taken) == MPI_SUCCESS;
       i++) {
  }
  await_rank_1(rank, file);
  unsigned char* memory = get_memory(kBytes);
  for (int i = 0; i < kCount; i++)
    wrong |= broadcast_and_check(memory, kBytes, mix((uint64_t)i), i % size, comm);
  free(memory);
  return finish(wrong, "broadcasts", kCount);
}
