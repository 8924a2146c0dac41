/* An MPI session without MPI_Init (MPI-4, 11.3): its communicators broadcast, and are freed before
 * it ends. Exit code 77 if MPI has no sessions.
 */
#include "tests/mpi/pattern.h"

int main(void) {
#if MPI_VERSION < 4 && OMPI_MAJOR_VERSION < 5
  fprintf(stderr, "session_check: Open MPI has sessions from version 5.0 on\n");
  return 77;
#else
  enum { kBytes = 200000 };
  MPI_Session session;
  MPI_Group group;
  int any = 0, rank = 0;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  unsigned char* memory = malloc(kBytes);
  if (memory == NULL) return 1;
  for (int round = 0; round < 2; round++) {
    MPI_Comm comm;
    int ranks, wrong = 0;
    MPI_Comm_create_from_group(group, round == 0 ? "first" : "second", MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    for (int root = 0; root < ranks; root++) {
      wrong |= broadcast_and_check(memory, 1000, mix((uint64_t)root), root, comm);
      wrong |= broadcast_and_check(memory, kBytes, mix((uint64_t)root + 1), root, comm);
    }
    int wrong_somewhere = 0;
    MPI_Allreduce(&wrong, &wrong_somewhere, 1, MPI_INT, MPI_MAX, comm);
    any |= wrong_somewhere;
    MPI_Comm_free(&comm);
  }
  free(memory);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  if (rank == 0 && !any) printf("ok: two communicators of a session\n");
  return any;
#endif
}
