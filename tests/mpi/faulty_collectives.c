/* MPI's collectives with a planted fault, for reductions_check: it must notice each. The variable FAULT
 * names one:
 *
 *   bit          MPI_Allreduce: the last rank's result has another bit
 *   order        MPI_Allreduce, MPI_Reduce: operands in the reverse order of ranks
 *   blocks       MPI_Allgather: blocks in the reverse order of ranks
 *   beyond       MPI_Allreduce: writes one byte behind the result
 *   input        MPI_Allreduce: changes the contribution
 *   early        MPI_Ibarrier: complete at once
 *   no_barrier   MPI_Barrier: returns at once
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int has(const char* fault) {
  const char* const planted = getenv("FAULT");
  return planted != NULL && strcmp(planted, fault) == 0;
}

static MPI_Comm reversed(MPI_Comm comm) {
  int rank;
  MPI_Comm other;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_split(comm, 0, -rank, &other);
  return other;
}

static char* end_of(void* buffer, int count, MPI_Datatype type) {
  MPI_Aint lower, extent;
  MPI_Type_get_true_extent(type, &lower, &extent);
  const MPI_Aint true_end = lower + extent;
  MPI_Type_get_extent(type, &lower, &extent);
  return (char*)buffer + (count - 1) * extent + true_end;
}

int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  MPI_Comm other = has("order") ? reversed(comm) : MPI_COMM_NULL;
  const int code = PMPI_Allreduce(from, to, count, type, op, other != MPI_COMM_NULL ? other : comm);
  if (other != MPI_COMM_NULL) MPI_Comm_free(&other);
  if (count == 0) return code;
  if (has("bit") && rank == ranks - 1) end_of(to, count, type)[-1] ^= 1;
  if (has("beyond")) *end_of(to, count, type) ^= 1;
  if (has("input") && from != MPI_IN_PLACE) end_of((void*)from, count, type)[-1] ^= 1;
  return code;
}

int MPI_Reduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
  if (!has("order")) return PMPI_Reduce(from, to, count, type, op, root, comm);
  int ranks;
  MPI_Comm_size(comm, &ranks);
  MPI_Comm other = reversed(comm);
  const int code = PMPI_Reduce(from, to, count, type, op, ranks - 1 - root, other);
  MPI_Comm_free(&other);
  return code;
}

int MPI_Allgather(const void* from, int count, MPI_Datatype type, void* to, int count_to,
                  MPI_Datatype type_to, MPI_Comm comm) {
  if (!has("blocks")) return PMPI_Allgather(from, count, type, to, count_to, type_to, comm);
  MPI_Comm other = reversed(comm);
  const int code = PMPI_Allgather(from, count, type, to, count_to, type_to, other);
  MPI_Comm_free(&other);
  return code;
}

int MPI_Barrier(MPI_Comm comm) { return has("no_barrier") ? MPI_SUCCESS : PMPI_Barrier(comm); }

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  if (!has("early")) return PMPI_Ibarrier(comm, request);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}
