/* Broadcasts from and to memory that the (imitated) GPU driver claims for its device: on odd ranks,
 * or as a root, or both. Right data, and the driver was asked. */
#include "tests/mpi/pattern.h"

void fake_gpu_claim(void* address, uint64_t bytes);
extern unsigned long fake_gpu_questions;

enum { kMost = 300000 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  unsigned char* memory = get_memory(kMost);
  if (rank % 2 == 1) fake_gpu_claim(memory, kMost);
  const long count = 20;
  for (long i = 0; i < count; i++) {
    const uint64_t key = mix((uint64_t)i);
    wrong |=
        broadcast_and_check(memory, i % 2 == 0 ? kMost : 500, key, (int)(i % size), MPI_COMM_WORLD);
  }
  if (fake_gpu_questions == 0) {
    fprintf(stderr, "device_memory_check: nobody asked the driver\n");
    wrong = 1;
  }
  const int code = conclude(wrong, "broadcasts", count);
  free(memory);
  MPI_Finalize();
  return code;
}
