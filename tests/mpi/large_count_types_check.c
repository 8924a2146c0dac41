// Broadcasts of types that were made with large counts (MPI 4), by MPI_Bcast and MPI_Bcast_c, from
// each root. MPI_Type_get_envelope refuses such types.
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
  }
  MPI_Type_free(&dense);
  MPI_Type_free(&gaps);
  MPI_Type_free(&copy);
  if (rank == 0) puts("ok: types with large counts");
  MPI_Finalize();
  return EXIT_SUCCESS;
}
