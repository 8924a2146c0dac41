/* Broadcasts of types that contain predefined types without names, as Fortran's kinds give them. MPI
 * forbids to free those, and a library that looks into a type gets them. */
#include "tests/mpi/pattern.h"

enum { kCount = 10, kTypes = 3 };

int main(int argc, char** argv) {
  int rank, ranks, wrong = 0;
  start_mpi(&argc, &argv, &rank, &ranks);
  MPI_Datatype real, integer, types[kTypes];
  MPI_Type_create_f90_real(15, 307, &real);
  MPI_Type_create_f90_integer(12, &integer);
  MPI_Type_contiguous(kCount, real, &types[0]);
  MPI_Type_dup(real, &types[1]);
  MPI_Type_contiguous(kCount, integer, &types[2]);
  unsigned char memory[kCount * kCount * sizeof(double)];
  long count = 0;
  for (int i = 0; i < kTypes; i++) {
    int size;
    MPI_Type_commit(&types[i]);
    MPI_Type_size(types[i], &size);
    for (int root = 0; root < ranks; root++, count++) {
      const size_t bytes = (size_t)size * kCount;
      before_broadcast(memory, bytes, (uint64_t)count, root, MPI_COMM_WORLD);
      MPI_Bcast(memory, kCount, types[i], root, MPI_COMM_WORLD);
      wrong |= after_broadcast(memory, bytes, (uint64_t)count, root, MPI_COMM_WORLD);
    }
    MPI_Type_free(&types[i]);
  }
  return finish(wrong, "broadcasts of types of Fortran's kinds", count);
}
