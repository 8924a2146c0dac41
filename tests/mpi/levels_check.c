/* MPI_Init_thread with each level of threads; then broadcasts.
 *
 *   levels_check --level single|funneled|serialized|multiple
 */
#include "tests/mpi/pattern.h"

int main(int argc, char** argv) {
  static const char* const names[] = {"single", "funneled", "serialized", "multiple"};
  static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                               MPI_THREAD_MULTIPLE};
  const char* const name = option(argc, argv, "--level", "single");
  unsigned char memory[70000];
  int required = -1, provided = -1, query = -1, is_main = 0, wrong = 0, size;
  for (int i = 0; i < 4; i++) {
    if (strcmp(name, names[i]) == 0) required = levels[i];
  }
  MPI_Init_thread(&argc, &argv, required, &provided);
  MPI_Query_thread(&query);
  MPI_Is_thread_main(&is_main);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (provided < required || query != provided || !is_main) {
    fprintf(stderr, "levels_check: required %d, provided %d, query %d, main %d\n", required,
            provided, query, is_main);
    wrong = 1;
  }
  for (int i = 0; i < 8; i++)
    wrong |= broadcast_and_check(memory, i % 2 ? sizeof memory : 100, (uint64_t)i, i % size,
                                 MPI_COMM_WORLD);
  return finish(wrong, "broadcasts", 8);
}
