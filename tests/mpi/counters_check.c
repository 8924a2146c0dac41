/* Broadcasts, then prints the MPI_T performance variables with "cepheus" in their names.
 *
 *   counters_check [--count N] [--bytes N] [--root RANK]
 */
#include "tests/mpi/pattern.h"
#include "tests/mpi/variables.h"

int main(int argc, char** argv) {
  int provided = 0, rank, wrong = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const long count = atol(option(argc, argv, "--count", "10"));
  const size_t bytes = (size_t)atol(option(argc, argv, "--bytes", "100"));
  const int root = atoi(option(argc, argv, "--root", "0"));
  unsigned char* memory = get_memory(bytes);
  watch_variables();
  for (long i = 0; i < count; i++) {
    wrong |= broadcast_and_check(memory, bytes, (uint64_t)i, root, MPI_COMM_WORLD);
  }
  if (rank == 0) print_variables();
  const int code = conclude(wrong, "broadcasts", count);
  free(memory);
  MPI_T_finalize(); /* first: Open MPI 4.1 crashes the other way round */
  MPI_Finalize();
  return code;
}
