/* A root that has returned from its broadcast, and is in MPI_Recv until the last rank has the data.
 *
 *   absent_root_check --until FILE
 *
 * The last rank prints "pausing", and waits for FILE. So a test can take its port down: then it needs
 * the root's answer while the root's program is in no broadcast. Plain MPI.
 */
#include "tests/mpi/file_watch.h"
#include "tests/mpi/pattern.h"

enum { kBytes = 1000, kRoot = 0 };

int main(int argc, char** argv) {
  int rank, size, wrong = 0, message = 0;
  start_mpi(&argc, &argv, &rank, &size);
  const int last = size - 1;
  unsigned char* memory = get_memory(kBytes);
  for (int i = 0; i < 10; i++)
    wrong |= broadcast_and_check(memory, kBytes, (uint64_t)i, kRoot, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == kRoot) {
    print_now("started");
    MPI_Recv(&message, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == last) {
    print_now("pausing");
    must_come(option(argc, argv, "--until", ""));
    MPI_Send(&message, 1, MPI_INT, kRoot, 0, MPI_COMM_WORLD);
  }
  wrong |= broadcast_and_check(memory, kBytes, 10, kRoot, MPI_COMM_WORLD);
  if (rank == kRoot)
    MPI_Recv(&message, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else if (rank == last)
    MPI_Send(&message, 1, MPI_INT, kRoot, 0, MPI_COMM_WORLD);
  free(memory);
  return finish(wrong, "broadcasts", 11);
}
