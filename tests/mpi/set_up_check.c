/* The first large broadcast comes when the fabric has just failed: its group is being set up while
 * the small ones' group fails. Between the two ranks exchange messages alone.
 *
 *   set_up_check --until FILE     "started" after some small broadcasts; the rest once FILE exists
 *                [--straight 1]   1: begins with a large one
 *   set_up_check --until FILE --end END
 *                [--barrier 1]    "started" before all collectives; once FILE exists small ones until
 *                                 END does; 1: "started" behind a barrier
 */
#include <unistd.h>

#include "tests/mpi/file_watch.h"
#include "tests/mpi/pattern.h"

enum { kLarge = 300000 };

/* Rank 0 has a message of each other rank, and each of them one of rank 0. */
static void meet(int rank, int size) {
  for (int other = 1; rank == 0 && other < size; other++)
    MPI_Recv(NULL, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int other = 1; rank == 0 && other < size; other++)
    MPI_Send(NULL, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD);
  if (rank == 0) return;
  MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The others wait in MPI, where they don't miss the root however late it comes. */
static void start_at(const char* file, int rank, int size) {
  if (rank == 0) {
    print_now("started");
    must_come(file);
  }
  meet(rank, size);
}

/* Broadcasts on a fabric that is gone before the first of them. */
static int many_small(const char* go, const char* end, int rank, int size, long* count) {
  unsigned char memory[100];
  int wrong = 0, stop = 0;
  start_at(go, rank, size);
  while (!stop) {
    for (int i = 0; i < 8; i++, ++*count)
      wrong |= broadcast_and_check(memory, sizeof memory, (uint64_t)*count, 0, MPI_COMM_WORLD);
    stop = access(end, F_OK) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &stop, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
  return wrong;
}

int main(int argc, char** argv) {
  int rank, size, wrong = 0;
  long count = 0;
  start_mpi(&argc, &argv, &rank, &size);
  const char* go = option(argc, argv, "--until", "");
  const char* end = option(argc, argv, "--end", "");
  if (*end != '\0') {
    if (atoi(option(argc, argv, "--barrier", "0"))) MPI_Barrier(MPI_COMM_WORLD);
    meet(rank, size);
    wrong = many_small(go, end, rank, size, &count);
    return finish(wrong, "broadcasts", count);
  }
  unsigned char* memory = get_memory(kLarge);
  for (; count < 20; count++)
    wrong |= broadcast_and_check(memory, 100, mix((uint64_t)count), 0, MPI_COMM_WORLD);
  start_at(go, rank, size);
  if (!atoi(option(argc, argv, "--straight", "0")))
    wrong |= broadcast_and_check(memory, 100, mix((uint64_t)count++), 0, MPI_COMM_WORLD);
  for (int i = 0; i < 3; i++, count++)
    wrong |= broadcast_and_check(memory, kLarge, mix((uint64_t)count), 0, MPI_COMM_WORLD);
  free(memory);
  return finish(wrong, "broadcasts", count);
}
