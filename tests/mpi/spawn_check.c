/* MPI_Comm_spawn: parents broadcast among themselves, to the children over the inter-communicator,
 * and with them on a merged one; then all disconnect, and the parents continue.
 *
 *   spawn_check [--children N]
 *   spawn_check --fail 1     a call on the merged communicator ends in errors: the ranks' counts differ
 *   spawn_check --at-end 1   none disconnects, and MPI_Finalize has more broadcasts on the merged
 *                            communicator: an attribute's, which is older than the communicator
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

/* 0: the call has failed on each rank. */
static int fail_once(MPI_Comm comm) {
  int rank, own[2] = {1, 1}, sums[2];
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return MPI_Allreduce(own, sums, rank == 0 ? 2 : 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS;
}

static MPI_Comm kept;

static int at_end(MPI_Comm comm, int key, void* memory, void* state) {
  (void)comm;
  (void)key;
  (void)state;
  return rounds(kept, memory, 4) == 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  unsigned char* memory = get_memory(kMost);
  const int is_kept = atoi(option(argc, argv, "--at-end", "0"));
  if (is_kept) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, memory);
  }
  const int children = atoi(option(argc, argv, "--children", "2"));
  MPI_Comm parent, other, all;
  int rank, wrong = 0, value = 0, any = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_get_parent(&parent);
  wrong |= rounds(MPI_COMM_WORLD, memory, 1);
  if (parent == MPI_COMM_NULL) {
    MPI_Comm_spawn(argv[0], argv + 1, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
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
  if (atoi(option(argc, argv, "--fail", "0"))) any |= fail_once(all);
  kept = all;
  if (!is_kept) {
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&other);
  }
  wrong = any | rounds(MPI_COMM_WORLD, memory, 3);
  int code = wrong; /* of a child: mpirun returns it */
  if (parent == MPI_COMM_NULL) code = conclude(wrong, "children", children);
  MPI_Finalize();
  free(memory);
  return code;
}
