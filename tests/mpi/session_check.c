/* Two MPI sessions without MPI_Init (MPI-4, 11.3), one after the other: their communicators
 * broadcast, and are freed before the session ends. MPI starts again for the second one, whose
 * communicators have no attribute with a key of the program's. Exit code 77 if MPI has no sessions.
 *
 *   session_check --outlive 1   instead: a session's communicator broadcasts after MPI_Finalize.
 *                               Rank 0 prints the performance variables once that is freed
 */
#include <string.h>

#include "tests/mpi/pattern.h"
#include "tests/mpi/variables.h"

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
#ifdef OPEN_MPI
enum { kSessions = 2 };
#else
enum { kSessions = 1 }; /* MPICH 4.0 crashes when it starts again */
#endif
enum { kBytes = 200000 };
static const char* const kNames[][2] = {{"first", "second"}, {"third", "fourth"}};

static int broadcast_in_session(int number, unsigned char* memory, int* rank) {
  MPI_Session session;
  MPI_Group group;
  int any = 0, key = MPI_KEYVAL_INVALID;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  /* The first session had none, so this is the number of the first key that was made there. */
  if (number > 0) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  }
  for (int round = 0; round < 2; round++) {
    MPI_Comm comm;
    void* value;
    int ranks, wrong = 0;
    const char* name = kNames[number][round];
    MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_set_name(comm, name);
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, rank);
    if (number > 0) MPI_Comm_get_attr(comm, key, &value, &wrong);
    if (wrong) fprintf(stderr, "session_check: rank %d: an attribute of the program's\n", *rank);
    for (int root = 0; root < ranks; root++) {
      wrong |= broadcast_and_check(memory, 1000, mix((uint64_t)root), root, comm);
      wrong |= broadcast_and_check(memory, kBytes, mix((uint64_t)root + 1), root, comm);
    }
    int wrong_somewhere = 0;
    MPI_Allreduce(&wrong, &wrong_somewhere, 1, MPI_INT, MPI_MAX, comm);
    any |= wrong_somewhere;
    MPI_Comm_free(&comm);
  }
  if (number > 0) MPI_Comm_free_keyval(&key);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  return any;
}

static int outlive(unsigned char* memory, int* rank) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int ranks, threads, wrong = 0;
  MPI_Init(NULL, NULL);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &threads);
  watch_variables();
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "outlives", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Comm_set_name(comm, "outlives");
  MPI_Comm_size(comm, &ranks);
  MPI_Comm_rank(comm, rank);
  for (int root = 0; root < 2 * ranks; root++) {
    wrong |= broadcast_and_check(memory, 1000, mix((uint64_t)root), root % ranks, comm);
    wrong |= broadcast_and_check(memory, kBytes, mix((uint64_t)root), root % ranks, comm);
    if (root == ranks) MPI_Finalize();
  }
  MPI_Comm_free(&comm);
  if (*rank == 0) print_variables();
  MPI_T_finalize();
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  return wrong;
}
#endif

int main(int argc, char** argv) {
#if MPI_VERSION < 4 && OMPI_MAJOR_VERSION < 5
  (void)argc;
  (void)argv;
  fprintf(stderr, "session_check: Open MPI has sessions from version 5.0 on\n");
  return 77;
#else
  int any = 0, rank = 0;
  unsigned char* memory = malloc(kBytes);
  if (memory == NULL) return 1;
  const int outlives = argc > 1 && strcmp(argv[1], "--outlive") == 0;
  if (outlives) any = outlive(memory, &rank);
  for (int i = 0; i < kSessions && !outlives; i++) any |= broadcast_in_session(i, memory, &rank);
  free(memory);
  if (rank == 0 && !any) printf("ok: communicators of sessions\n");
  return any;
#endif
}
