// Broadcasts and gathers of types that were made with large counts (MPI 4), by MPI_Bcast, MPI_Bcast_c
// and MPI_Allgather_c. MPI_Type_get_envelope refuses such types. Reductions with large counts, too.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 700, kStride = 3 };

static void fill(int* data, int root) {
  for (int i = 0; i < kBlocks * kStride; ++i) data[i] = root * 10007 + i;
}

// Every number that the type covers is the root's.
static void check(const int* data, int root, int step) {
  for (int i = 0; i < kBlocks; ++i) {
    if (data[i * step] == root * 10007 + i * step) continue;
    fprintf(stderr, "root %d, block %d: %d\n", root, i, data[i * step]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static void broadcast(MPI_Datatype type, int step, int rank, int root) {
  int data[kBlocks * kStride];
  for (int with_large_count = 0; with_large_count < 2; ++with_large_count) {
    memset(data, 0, sizeof data);
    if (rank == root) fill(data, root);
    if (with_large_count)
      MPI_Bcast_c(data, 1, type, root, MPI_COMM_WORLD);
    else
      MPI_Bcast(data, 1, type, root, MPI_COMM_WORLD);
    check(data, root, step);
  }
}

static void expect(double is, double should, const char* what) {
  if (is == should) return;
  fprintf(stderr, "%s: %g, not %g\n", what, is, should);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void reduce(int rank, int size, int root) {
  const double own = rank + root, total = size * (size - 1) / 2 + size * root;
  const double last = size - 1 + root;
  double result = -1;
  MPI_Request request;
  MPI_Allreduce_c(&own, &result, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  expect(result, total, "MPI_Allreduce_c");
  MPI_Iallreduce_c(&own, &result, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(result, last, "MPI_Iallreduce_c");
  result = -1;
  MPI_Reduce_c(&own, &result, 1, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
  expect(result, rank == root ? total : -1, "MPI_Reduce_c");
  result = -1;
  MPI_Ireduce_c(&own, &result, 1, MPI_DOUBLE, MPI_MAX, root, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(result, rank == root ? last : -1, "MPI_Ireduce_c");
}

// Every second int of each rank's part.
static void gather(int rank, int size) {
  enum { kInts = 4, kPart = 2 * kInts };
  MPI_Datatype gaps, part;
  MPI_Type_vector_c(kInts, 1, 2, MPI_INT, &gaps);
  MPI_Type_create_resized_c(gaps, 0, kPart * sizeof(int), &part);
  MPI_Type_commit(&part);
  const int own[kInts] = {rank, rank + 1, rank + 2, rank + 3};
  int* const all = malloc((size_t)(size * kPart) * sizeof(int));
  for (int blocking = 0; blocking < 2; ++blocking) {
    MPI_Request request = MPI_REQUEST_NULL;
    memset(all, 0xFF, (size_t)(size * kPart) * sizeof(int));
    if (blocking)
      MPI_Allgather_c(own, kInts, MPI_INT, all, 1, part, MPI_COMM_WORLD);
    else
      MPI_Iallgather_c(own, kInts, MPI_INT, all, 1, part, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size * kPart; ++i)
      expect(all[i], i % 2 == 0 ? i / kPart + i % kPart / 2 : -1, "MPI_Allgather_c");
  }
  free(all);
  MPI_Type_free(&part);
  MPI_Type_free(&gaps);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Datatype dense, gaps, copy;
  MPI_Type_contiguous_c(kBlocks, MPI_INT, &dense);
  MPI_Type_vector_c(kBlocks, 1, kStride, MPI_INT, &gaps);
  MPI_Type_dup(dense, &copy);
  MPI_Type_commit(&dense);
  MPI_Type_commit(&gaps);
  MPI_Type_commit(&copy);
  for (int root = 0; root < size; ++root) {
    broadcast(dense, 1, rank, root);
    broadcast(gaps, kStride, rank, root);
    broadcast(copy, 1, rank, root);
    reduce(rank, size, root);
    gather(rank, size);
  }
  MPI_Type_free(&dense);
  MPI_Type_free(&gaps);
  MPI_Type_free(&copy);
  if (rank == 0) puts("ok: types with large counts");
  MPI_Finalize();
  return EXIT_SUCCESS;
}
