/* Ranks that are late, and roots that leave early.
 *
 *   late_check --late SECONDS       before some broadcasts one rank computes for SECONDS
 *   late_check --behind SECONDS     rank after rank computes for SECONDS, while the others have
 *                                   more small broadcasts than there are buffers for
 *   late_check --end SECONDS        the last rank computes for SECONDS before it frees a
 *                                   communicator and finalizes; it does so only once rank 0's
 *                                   MPI_Comm_free has returned, which must not wait for it
 *   late_check --leave COUNT        rank 0 broadcasts COUNT small messages and finalizes at once,
 *                                   while the others first compute for a second
 */
#include "tests/mpi/pattern.h"

enum { kMost = 100000 };

static void compute(double seconds) {
  volatile double x = 1;
  for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) x = x * 1.0000001;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double late = atof(option(argc, argv, "--late", "0"));
  const double behind = atof(option(argc, argv, "--behind", "0"));
  const double end = atof(option(argc, argv, "--end", "0"));
  const long leave = atol(option(argc, argv, "--leave", "0"));
  unsigned char* memory = get_memory(kMost);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long count = 0;
  for (; late > 0 && count < 40; count++) {
    const uint64_t key = mix((uint64_t)count);
    if (count % 10 == 5 && rank == (int)(key % (uint64_t)size)) compute(late);
    wrong |= broadcast_and_check(memory, count % 3 == 0 ? kMost : key % 2000, key,
                                 (int)(count % size), MPI_COMM_WORLD);
  }
  for (int idle = 0; behind > 0 && idle < size; idle++) {
    if (rank == idle) compute(behind);
    for (long i = 0; i < 200; i++, count++) {
      wrong |=
          broadcast_and_check(memory, 100, mix((uint64_t)count), (idle + 1) % size, MPI_COMM_WORLD);
    }
  }
  if (end > 0) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (; count < 20; count++) wrong |= broadcast_and_check(memory, 100, (uint64_t)count, 0, comm);
    int code = conclude(wrong, "broadcasts", count);
    if (rank == size - 1) {
      compute(end);
      MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&comm);
    if (rank == 0) MPI_Send(NULL, 0, MPI_BYTE, size - 1, 0, MPI_COMM_WORLD);
    free(memory);
    MPI_Finalize();
    return code;
  }
  int code = 0;
  if (leave == 0) {
    code = conclude(wrong, "broadcasts", count);
  } else {
    if (rank != 0) compute(1);
    for (long i = 0; i < leave; i++) {
      wrong |= broadcast_and_check(memory, 100, mix((uint64_t)i), 0, MPI_COMM_WORLD);
    }
    code = wrong;
    if (rank == size - 1 && !wrong) printf("ok: %ld broadcasts of a root that left\n", leave);
  }
  free(memory);
  MPI_Finalize();
  return code;
}
