/* Rank 0's turn has more packets than switches can compare PSNs. Then
 * each other rank broadcasts, then rank 0 again. Every byte is checked. Plain MPI.
 *
 *   mpirun ... long_turn_check [--packets N] [--mtu BYTES] [--message BYTES]
 *
 * --packets: of rank 0's turn. --mtu: the fabric's path MTU. --message: bytes of one broadcast.
 * Exit 0 and a line "ok: ..." if all was right.
 */
#include "tests/mpi/pattern.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const uint64_t packets = strtoull(option(argc, argv, "--packets", "9000000"), NULL, 0);
  const uint64_t mtu = strtoull(option(argc, argv, "--mtu", "256"), NULL, 0);
  const size_t message = (size_t)atoll(option(argc, argv, "--message", "16777216"));
  const size_t after = 1 << 20;
  unsigned char* memory = get_memory(message > after ? message : after);
  int size, wrong = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  uint64_t key = 1;
  long broadcasts = 0;
  for (uint64_t sent = 0; sent < packets; sent += (message + mtu - 1) / mtu, broadcasts++) {
    wrong |= broadcast_and_check(memory, message, key++, 0, MPI_COMM_WORLD);
  }
  for (int turn = 1; turn <= size; turn++, broadcasts++) {
    wrong |= broadcast_and_check(memory, after, key++, turn % size, MPI_COMM_WORLD);
  }
  free(memory);
  return finish(wrong, "broadcasts", broadcasts);
}
