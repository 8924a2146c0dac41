/* MPI_Comm_spawn: parents broadcast among themselves, to the children over the inter-communicator,
 * and with them on a merged one; then all disconnect, and the parents continue.
 *
 *   spawn_check [--children N]
 */
#include "tests/mpi/pattern.h"

enum { kMost = 200000 };

static int rounds(MPI_Comm comm, unsigned char* memory, uint64_t seed) {
  int wrong = 0, size;
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < 20; i++) {
    const uint64_t key = mix(seed + (uint64_t)i);
    wrong |= broadcast_and_check(memory, i % 4 == 3 ? kMost : key % 5000, key, i % size, comm);
  }
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  unsigned char* memory = get_memory(kMost);
  const int children = atoi(option(argc, argv, "--children", "2"));
  MPI_Comm parent, other, all;
  int rank, wrong = 0, value = 0, any = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_get_parent(&parent);
  wrong |= rounds(MPI_COMM_WORLD, memory, 1);
  if (parent == MPI_COMM_NULL) {
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
                   MPI_ERRCODES_IGNORE);
    value = 4711;
    MPI_Bcast(&value, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, other);
  } else {
    other = parent;
    MPI_Bcast(&value, 1, MPI_INT, 0, other);
    wrong |= value != 4711;
  }
  MPI_Intercomm_merge(other, parent != MPI_COMM_NULL, &all);
  wrong |= rounds(all, memory, 2);
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, all);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&other);
  wrong = any | rounds(MPI_COMM_WORLD, memory, 3);
  int code = wrong; /* of a child: mpirun returns it */
  if (parent == MPI_COMM_NULL) code = conclude(wrong, "children", children);
  free(memory);
  MPI_Finalize();
  return code;
}
