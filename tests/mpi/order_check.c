/* Programs with unusual calls around their first broadcast.
 *
 *   order_check --idup 1      it comes while an MPI_Comm_idup of the communicator is in flight
 *   order_check --ibcast 1    it is an MPI_Ibcast; a blocking one follows, and one with a buffer
 *                             that is too small on a rank, with MPI_ERRORS_RETURN
 *   order_check --counts 1    the last rank passes other counts of small broadcasts than the others,
 *                             with MPI_ERRORS_RETURN: it gets errors, they get their data, and all
 *                             ranks get theirs in the broadcasts that follow; then it counts
 *                             otherwise, and an MPI_Ibcast ends in an error
 *   order_check --retry 1 --until FILE
 *                             one communicator broadcasts and is freed; another broadcasts before
 *                             that and until FILE exists; rank 0 prints "started" between
 *   order_check --preferred LIST
 *                             its communicator's info prefers these components of Open MPI's
 *   order_check --behind 1    a rank receives in MPI_Recv while an MPI_Iallreduce with an operation
 *                             of its own, and an MPI_Ibarrier behind it, are in flight
 *   order_check --dups N      it comes after N communicators that never broadcast; rank 0 prints
 *                             "looks N": the number of library look-ups by name meanwhile
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

#include "tests/mpi/pattern.h"
#include "tests/mpi/variables.h"

static long looks;

/* Replaces the C library's. */
__attribute__((visibility("default"))) void* dlopen(const char* name, int flags) {
  static void* (*real)(const char*, int);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "dlopen");
  if (name != NULL && strncmp(name, "libcuda", 7) == 0) looks++;
  return real(name, flags);
}

/* The root alone makes progress with the duplication before it broadcasts. MPI's own calls for the
 * duplication then come before the broadcast there, and during the broadcast on other ranks. */
static int while_dup_is_in_flight(int rank) {
  enum { kTests = 2000, kRoot = 1 };
  unsigned char memory[1000];
  int wrong = 0;
  for (int i = 0; i < 8; i++) {
    MPI_Comm base, dup;
    MPI_Request request;
    int is_complete = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &base);
    MPI_Comm_idup(base, &dup, &request);
    for (int test = 0; rank == kRoot && test < kTests && !is_complete; test++)
      MPI_Test(&request, &is_complete, MPI_STATUS_IGNORE);
    wrong |= broadcast_and_check(memory, sizeof memory, (uint64_t)i, kRoot, base);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong |= broadcast_and_check(memory, sizeof memory, (uint64_t)i + 100, 0, dup);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&base);
  }
  return wrong;
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; i++) ((int*)inout)[i] += ((int*)in)[i];
}

/* Rank 0 is in MPI_Recv until all others have left the barrier, which it has to contribute to. */
static int behind_an_operation(int rank, int size) {
  int wrong = 0;
  MPI_Op sum;
  MPI_Op_create(add, 1, &sum);
  for (int i = 0; i < 50; i++) {
    const int mine = rank + i;
    int all = 0, word = i;
    MPI_Request requests[2];
    MPI_Iallreduce(&mine, &all, 1, MPI_INT, sum, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
    if (rank == 0) MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (rank == 1) MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    if (all == size * (size - 1) / 2 + size * i) continue;
    fprintf(stderr, "rank %d: sum %d is %d\n", rank, i, all);
    wrong = 1;
  }
  MPI_Op_free(&sum);
  return wrong;
}

static int after_ibcast(int rank, int size) {
  unsigned char memory[1000];
  int wrong = 0;
  MPI_Request request;
  before_broadcast(memory, sizeof memory, 1, 0, MPI_COMM_WORLD);
  MPI_Ibcast(memory, sizeof memory, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  wrong |= after_broadcast(memory, sizeof memory, 1, 0, MPI_COMM_WORLD);
  for (int i = 0; i < 5; i++)
    wrong |= broadcast_and_check(memory, sizeof memory, (uint64_t)i, 1, MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int length = rank == size - 1 ? 500 : 1000;
  const int code = MPI_Bcast(memory, length, MPI_BYTE, 0, MPI_COMM_WORLD);
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  if (class != (rank == size - 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS)) {
    fprintf(stderr, "rank %d: error class %d of a broadcast into %d of 1000 bytes\n", rank, class,
            length);
    wrong = 1;
  }
  wrong |= broadcast_and_check(memory, sizeof memory, 77, 0, MPI_COMM_WORLD);
  return wrong;
}

/* The last rank passes `other` bytes instead of `bytes`; then a right broadcast of each size. */
static int with_other_count(int bytes, int other, int class_wanted, int rank, int size) {
  const int is_last = rank == size - 1, root = 0;
  unsigned char* memory = get_memory(200000);
  int wrong = 0, class = MPI_SUCCESS;
  before_broadcast(memory, (size_t)bytes, 5, root, MPI_COMM_WORLD);
  const int code = MPI_Bcast(memory, is_last ? other : bytes, MPI_BYTE, root, MPI_COMM_WORLD);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  if (class != (is_last ? class_wanted : MPI_SUCCESS)) {
    fprintf(stderr, "rank %d: error class %d where ranks pass %d and %d bytes\n", rank, class,
            bytes, other);
    wrong = 1;
  }
  if (!is_last) wrong |= after_broadcast(memory, (size_t)bytes, 5, root, MPI_COMM_WORLD);
  for (int i = 0; i < 3; i++) {
    wrong |= broadcast_and_check(memory, 100, (uint64_t)i, i % size, MPI_COMM_WORLD);
    wrong |= broadcast_and_check(memory, 30000, (uint64_t)i, i % size, MPI_COMM_WORLD);
    wrong |= broadcast_and_check(memory, 200000, 9, i % size, MPI_COMM_WORLD);
  }
  free(memory);
  return wrong;
}

/* The last rank counts another number of messages. So its next call ends in an error, which has a
 * class of MPI's in the status. */
static int with_an_error_in_the_status(int rank, int size) {
  const int is_last = rank == size - 1;
  unsigned char memory[30000];
  MPI_Request request;
  MPI_Status status;
  (void)MPI_Bcast(memory, is_last ? 30000 : 10000, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Ibcast(memory, 100, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  const int code = MPI_Waitall(1, &request, &status);
  if (!is_last) return code != MPI_SUCCESS;
  /* MPICH's codes hold more than a class; Open MPI's internal ones are below 0. */
  int class = MPI_SUCCESS;
  if (status.MPI_ERROR > 0) MPI_Error_class(status.MPI_ERROR, &class);
  if (code == MPI_ERR_IN_STATUS && class == MPI_ERR_OTHER) return 0;
  fprintf(stderr, "rank %d: MPI_Waitall returns %d with %d in the status\n", rank, code,
          status.MPI_ERROR);
  return 1;
}

static int with_other_counts(int rank, int size) {
  unsigned char memory[100];
  int wrong = broadcast_and_check(memory, sizeof memory, 1, 0, MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  wrong |= with_other_count(1000, 500, MPI_ERR_TRUNCATE, rank, size);
  wrong |= with_other_count(500, 1000, MPI_ERR_COUNT, rank, size);
  wrong |= with_an_error_in_the_status(rank, size);
  return wrong;
}

static int with_preferred_components(const char* list) {
  unsigned char memory[1000];
  MPI_Info info;
  MPI_Comm comm;
  int wrong = 0;
  MPI_Info_create(&info);
  MPI_Info_set(info, "ompi_comm_coll_preference", list);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, info, &comm);
  for (int i = 0; i < 10; i++)
    wrong |= broadcast_and_check(memory, sizeof memory, (uint64_t)i, i % 2, comm);
  MPI_Comm_free(&comm);
  MPI_Info_free(&info);
  return wrong;
}

static int retry_until(const char* file, int rank) {
  unsigned char memory[100];
  MPI_Comm first, second;
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_dup(MPI_COMM_WORLD, &second);
  int wrong = broadcast_and_check(memory, sizeof memory, 1, 0, first);
  wrong |= broadcast_and_check(memory, sizeof memory, 2, 0, second);
  MPI_Comm_free(&first);
  if (rank == 0) print_now("started");
  for (int stop = 0, i = 0; !stop; i++) {
    wrong |= broadcast_and_check(memory, sizeof memory, (uint64_t)i, i % 2, second);
    if (i % 100 == 99) { /* no reduction, which would take the space for its own group */
      stop = access(file, F_OK) == 0;
      MPI_Bcast(&stop, 1, MPI_INT, 0, second);
    }
  }
  MPI_Comm_free(&second);
  return wrong;
}

int main(int argc, char** argv) {
  int provided = 0, rank, size, wrong = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  start_mpi(&argc, &argv, &rank, &size);
  const long dups = atol(option(argc, argv, "--dups", "0"));
  watch_variables();
  if (atoi(option(argc, argv, "--idup", "0"))) wrong |= while_dup_is_in_flight(rank);
  if (atoi(option(argc, argv, "--behind", "0"))) wrong |= behind_an_operation(rank, size);
  if (atoi(option(argc, argv, "--ibcast", "0"))) wrong |= after_ibcast(rank, size);
  if (atoi(option(argc, argv, "--counts", "0"))) wrong |= with_other_counts(rank, size);
  const char* const preferred = option(argc, argv, "--preferred", "");
  if (*preferred) wrong |= with_preferred_components(preferred);
  if (atoi(option(argc, argv, "--retry", "0")))
    wrong |= retry_until(option(argc, argv, "--until", ""), rank);
  for (long i = 0; i < dups; i++) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
  }
  if (dups > 0) {
    unsigned char memory[1000];
    wrong |= broadcast_and_check(memory, sizeof memory, 5, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("looks %ld\n", looks);
  }
  if (rank == 0) print_variables();
  const int code = conclude(wrong, "orders", 1);
  MPI_T_finalize(); /* first: Open MPI 4.1 crashes the other way round */
  MPI_Finalize();
  return code;
}
