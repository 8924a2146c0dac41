/* A program under an Open MPI whose user-level fault mitigation is on: it exports that switch, as
 * Open MPI 5 does. Broadcasts, every byte checked, and the MPI_T variables of coll/cepheus. */
#include <stdbool.h>

#include "tests/mpi/pattern.h"
#include "tests/mpi/variables.h"

__attribute__((visibility("default"))) bool ompi_ftmpi_enabled = true;

int main(int argc, char** argv) {
  int provided = 0, wrong = 0;
  unsigned char memory[1000];
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Init(&argc, &argv);
  watch_variables();
  for (int i = 0; i < 10; i++)
    wrong |= broadcast_and_check(memory, sizeof memory, (uint64_t)i, 0, MPI_COMM_WORLD);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) print_variables();
  const int code = conclude(wrong, "broadcasts", 10);
  MPI_T_finalize(); /* first: Open MPI 4.1 crashes the other way round */
  MPI_Finalize();
  return code;
}
