/* Broadcasts and reductions with wrong arguments on all ranks: the MPI library reports each by its
 * error class, and right ones still work, also from MPI_BOTTOM, which is a null address. Plain MPI.
 *
 *   wrong_arguments_check [--structs 1] [--gathers 1]
 *
 * --structs 1: also an operation that assigns whole structs. Open MPI 4.1's own algorithms write
 * beyond their memory then. --gathers 1: also gathers with wrong arguments on one rank alone.
 */
#include "tests/mpi/pattern.h"

enum { kNumbers = 1000 };

static int wrong = 0;

static void expect(int expected, const char* what, int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  if (class == expected) return;
  fprintf(stderr, "%s: error class %d instead of %d\n", what, class, expected);
  wrong = 1;
}

static void check_errors(int* data, int size) {
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  expect(MPI_ERR_TYPE, "type not committed", MPI_Bcast(data, 8, pair, 0, MPI_COMM_WORLD));
  MPI_Type_commit(&pair);
#ifdef MPICH_VERSION /* Open MPI reads the null address */
  expect(MPI_ERR_BUFFER, "null", MPI_Bcast(NULL, 8, MPI_INT, 0, MPI_COMM_WORLD));
  expect(MPI_ERR_BUFFER, "null, large", MPI_Bcast(NULL, 1 << 20, MPI_INT, 0, MPI_COMM_WORLD));
  expect(MPI_ERR_BUFFER, "null, pairs", MPI_Bcast(NULL, 8, pair, 0, MPI_COMM_WORLD));
#endif
  expect(MPI_ERR_COUNT, "count", MPI_Bcast(data, -1, MPI_INT, 0, MPI_COMM_WORLD));
  expect(MPI_ERR_ROOT, "root below", MPI_Bcast(data, 8, MPI_INT, -7, MPI_COMM_WORLD));
  expect(MPI_ERR_ROOT, "root above", MPI_Bcast(data, 8, MPI_INT, size, MPI_COMM_WORLD));
  expect(MPI_ERR_TYPE, "null type", MPI_Bcast(data, 8, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
  expect(MPI_ERR_COMM, "null communicator", MPI_Bcast(data, 8, MPI_INT, 0, MPI_COMM_NULL));
  MPI_Type_free(&pair);
}

static void check_ibcast_errors(int* data, int size) {
  MPI_Request none;
  expect(MPI_ERR_COUNT, "ibcast: count", MPI_Ibcast(data, -1, MPI_INT, 0, MPI_COMM_WORLD, &none));
  expect(MPI_ERR_ROOT, "ibcast: root", MPI_Ibcast(data, 8, MPI_INT, size, MPI_COMM_WORLD, &none));
  expect(MPI_ERR_COMM, "ibcast: communicator",
         MPI_Ibcast(data, 8, MPI_INT, 0, MPI_COMM_NULL, &none));
#ifdef MPICH_VERSION
  expect(MPI_ERR_ARG, "ibcast: request", MPI_Ibcast(data, 8, MPI_INT, 0, MPI_COMM_WORLD, NULL));
#endif
}

static void check_reduction_errors(int* data, int size) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  int out[8];
  double number = 1, result;
  MPI_Request none;
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  expect(MPI_ERR_OP, "operation on a type that it does not take",
         MPI_Allreduce(&number, &result, 1, MPI_DOUBLE, MPI_BAND, comm));
  expect(MPI_ERR_OP, "null operation", MPI_Allreduce(data, out, 1, MPI_INT, MPI_OP_NULL, comm));
  expect(MPI_ERR_OP, "null operation of iallreduce",
         MPI_Iallreduce(data, out, 1, MPI_INT, MPI_OP_NULL, comm, &none));
#ifndef MPICH_VERSION /* MPICH 4.0 crashes */
  expect(MPI_ERR_COUNT, "count of allreduce", MPI_Allreduce(data, out, -1, MPI_INT, MPI_SUM, comm));
  expect(MPI_ERR_COUNT, "count of ireduce",
         MPI_Ireduce(data, out, -1, MPI_INT, MPI_SUM, 0, comm, &none));
#endif
  expect(MPI_ERR_ROOT, "root of reduce", MPI_Reduce(data, out, 1, MPI_INT, MPI_SUM, size, comm));
#ifdef MPICH_VERSION /* Open MPI uses such a type */
  expect(MPI_ERR_TYPE, "type of allgather not committed",
         MPI_Allgather(data, 2, MPI_INT, data, 1, pair, comm));
#endif
  expect(MPI_ERR_COMM, "null communicator of barrier", MPI_Barrier(MPI_COMM_NULL));
  expect(MPI_ERR_COMM, "null communicator of ibarrier", MPI_Ibarrier(MPI_COMM_NULL, &none));
  MPI_Type_free(&pair);
}

/* Each rank's numbers from MPI_BOTTOM. */
static void check_bottom_gather(int* data, int rank, int size) {
  MPI_Aint address;
  MPI_Datatype absolute;
  const int length = 5;
  MPI_Get_address(data, &address);
  MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &absolute);
  MPI_Type_commit(&absolute);
  int all[5 * 64] = {0};
  for (int i = 0; i < length; i++) data[i] = rank * length + i;
  expect(MPI_SUCCESS, "allgather from bottom",
         MPI_Allgather(MPI_BOTTOM, 1, absolute, all, length, MPI_INT, MPI_COMM_WORLD));
  for (int i = 0; i < length * size; i++) {
    if (all[i] == i) continue;
    fprintf(stderr, "number %d of an allgather is %d\n", i, all[i]);
    wrong = 1;
  }
  MPI_Type_free(&absolute);
}

static void check_bottom(int* data, int rank) {
  MPI_Aint address;
  MPI_Datatype absolute;
  const int length = kNumbers;
  MPI_Get_address(data, &address);
  MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &absolute);
  MPI_Type_commit(&absolute);
  before_broadcast((unsigned char*)data, kNumbers * sizeof *data, 5, 0, MPI_COMM_WORLD);
  if (rank % 2 == 0)
    expect(MPI_SUCCESS, "bottom", MPI_Bcast(MPI_BOTTOM, 1, absolute, 0, MPI_COMM_WORLD));
  else
    expect(MPI_SUCCESS, "address", MPI_Bcast(data, kNumbers, MPI_INT, 0, MPI_COMM_WORLD));
  wrong |= after_broadcast((unsigned char*)data, kNumbers * sizeof *data, 5, 0, MPI_COMM_WORLD);
  MPI_Type_free(&absolute);
}

/* A struct of a program. Its last bytes are no data of the type. */
struct item {
  double value;
  int rank;
  int rest[7];
};

static void take_larger(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  const struct item* from = in;
  struct item* to = inout;
  for (int i = 0; i < *count; i++)
    if (from[i].value > to[i].value) to[i] = from[i];
}

/* A user's operation that assigns whole structs. */
static void check_whole_structs(int rank, int size) {
  enum { kMost = 3, kLooks = 20 };
  MPI_Datatype data, type, parts[] = {MPI_DOUBLE, MPI_INT};
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, sizeof(double)};
  MPI_Op op;
  MPI_Type_create_struct(2, lengths, places, parts, &data);
  MPI_Type_create_resized(data, 0, sizeof(struct item), &type);
  MPI_Type_commit(&type);
  MPI_Op_create(take_larger, 1, &op);
  for (int look = 0; look < kLooks; look++) {
    struct item own[kMost] = {{0}}, largest[kMost] = {{0}};
    const int count = look % 2 == 0 ? 1 : kMost;
    for (int i = 0; i < count; i++) {
      own[i].value = (double)mix((uint64_t)(look * 1000 + i * 100 + rank));
      own[i].rank = rank;
    }
    MPI_Allreduce(own, largest, count, type, op, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
      int at = 0;
      for (int other = 1; other < size; other++)
        if (mix((uint64_t)(look * 1000 + i * 100 + other)) >
            mix((uint64_t)(look * 1000 + i * 100 + at)))
          at = other;
      if (largest[i].rank == at) continue;
      fprintf(stderr, "the largest struct of rank %d counts as rank %d's\n", at, largest[i].rank);
      wrong = 1;
    }
  }
  MPI_Op_free(&op);
  MPI_Type_free(&type);
  MPI_Type_free(&data);
}

/* One rank alone sends more or fewer numbers than others receive. It alone gets an error, and the
 * next call is in order on all ranks. */
static void check_gathers(int rank, int size) {
  enum { kFewer = 1, kUsual, kMore = 5 };
  const int wrong_rank = 1, kinds = 4;
  for (int kind = 0; kind < kinds; kind++) {
    const int count = rank != wrong_rank ? kUsual : kind % 2 == 0 ? kMore : kFewer;
    int own[kMore] = {10 + rank}, all[kUsual * 64] = {0}, sum = 0, code;
    MPI_Request request;
    if (kind < 2) {
      code = MPI_Allgather(own, count, MPI_INT, all, kUsual, MPI_INT, MPI_COMM_WORLD);
    } else {
      MPI_Iallgather(own, count, MPI_INT, all, kUsual, MPI_INT, MPI_COMM_WORLD, &request);
      code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    expect(rank == wrong_rank ? MPI_ERR_TRUNCATE : MPI_SUCCESS, "allgather of one wrong rank",
           code);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
      if (i != wrong_rank && all[i * kUsual] != 10 + i) sum = -1;
    if (sum == size * (size - 1) / 2) continue;
    fprintf(stderr, "rank %d, kind %d: other ranks' numbers are wrong\n", rank, kind);
    wrong = 1;
  }
}

int main(int argc, char** argv) {
  int rank, size;
  start_mpi(&argc, &argv, &rank, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int* data = get_memory(kNumbers * sizeof *data);
  check_errors(data, size);
  for (int root = 0; root < size; ++root) {
    wrong |= broadcast_and_check((unsigned char*)data, 100, (uint64_t)root, root, MPI_COMM_WORLD);
    check_errors(data, size);
    check_ibcast_errors(data, size);
    check_reduction_errors(data, size);
    check_bottom(data, rank);
    check_bottom_gather(data, rank, size);
  }
  if (atoi(option(argc, argv, "--structs", "0"))) check_whole_structs(rank, size);
  if (atoi(option(argc, argv, "--gathers", "0"))) check_gathers(rank, size);
  free(data);
  return finish(wrong, "roots", size);
}
