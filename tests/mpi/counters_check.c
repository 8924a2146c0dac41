/* Broadcasts, then prints the MPI_T performance variables whose names hold "cepheus".
 *
 *   counters_check [--count N] [--bytes N]
 */
#include "tests/mpi/pattern.h"

enum { kMostVariables = 64 };

struct variable {
  char name[256];
  MPI_T_pvar_handle handle;
};

/* Counters count from here on (MPI 3.1, 14.3.7). */
static int find_variables(MPI_T_pvar_session session, struct variable* out) {
  int variables = 0, found = 0;
  MPI_T_pvar_get_num(&variables);
  for (int i = 0; i < variables && found < kMostVariables; i++) {
    int size = sizeof out->name, none = 0, count = 0;
    int verbosity, class, bind, readonly, continuous, atomic;
    MPI_Datatype type;
    MPI_T_enum values;
    if (MPI_T_pvar_get_info(i, out[found].name, &size, &verbosity, &class, &type, &values, NULL,
                            &none, &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS)
      continue;
    if (strstr(out[found].name, "cepheus") == NULL) continue;
    MPI_T_pvar_handle_alloc(session, i, NULL, &out[found].handle, &count);
    found++;
  }
  return found;
}

int main(int argc, char** argv) {
  int provided = 0, rank, wrong = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const long count = atol(option(argc, argv, "--count", "10"));
  const size_t bytes = (size_t)atol(option(argc, argv, "--bytes", "100"));
  unsigned char* memory = get_memory(bytes);
  static struct variable variables[kMostVariables];
  MPI_T_pvar_session session;
  MPI_T_pvar_session_create(&session);
  const int found = find_variables(session, variables);
  for (long i = 0; i < count; i++) {
    wrong |= broadcast_and_check(memory, bytes, (uint64_t)i, 0, MPI_COMM_WORLD);
  }
  for (int i = 0; i < found; i++) {
    unsigned long long value = 0;
    MPI_T_pvar_read(session, variables[i].handle, &value);
    MPI_T_pvar_handle_free(session, &variables[i].handle);
    if (rank == 0) printf("%s %llu\n", variables[i].name, value);
  }
  MPI_T_pvar_session_free(&session);
  const int code = conclude(wrong, "broadcasts", count);
  free(memory);
  MPI_T_finalize(); /* first: Open MPI 4.1 crashes the other way round */
  MPI_Finalize();
  return code;
}
