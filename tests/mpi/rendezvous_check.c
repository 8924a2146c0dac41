/* A peer's large message waits for this rank's progress, while this rank waits in a broadcast.
 *
 *   rendezvous_check [--count N]
 *
 * Rank 1 sends rank 2 a megabyte and waits for that; only then it broadcasts, as the root. Rank 2 has
 * posted the receive, and is in the broadcast meanwhile. Plain MPI.
 */
#include "tests/mpi/pattern.h"

enum { kBytes = 1 << 20, kRoot = 1, kReceiver = 2 };

int main(int argc, char** argv) {
  const long count = atol(option(argc, argv, "--count", "10"));
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  unsigned char* sent = get_memory(kBytes);
  unsigned char* data = get_memory(kBytes);
  int wrong = 0;
  for (long i = 0; i < count; i++) {
    const size_t bytes = i % 2 == 0 ? 1000 : kBytes;
    const uint64_t key = mix((uint64_t)i);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == kReceiver) MPI_Irecv(sent, kBytes, MPI_BYTE, kRoot, 0, MPI_COMM_WORLD, &request);
    if (rank == kRoot) {
      fill(sent, kBytes, key + 1);
      fill(data, bytes, key);
      MPI_Ssend(sent, kBytes, MPI_BYTE, kReceiver, 0, MPI_COMM_WORLD);
    }
    MPI_Bcast(data, (int)bytes, MPI_BYTE, kRoot, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (check(data, bytes, key) != bytes) wrong = 1;
    if (rank == kReceiver && check(sent, kBytes, key + 1) != kBytes) wrong = 1;
  }
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !any) printf("ok: %ld broadcasts\n", count);
  free(sent);
  free(data);
  MPI_Finalize();
  return any;
}
