/* Broadcasts and reductions from and to memory that the (imitated) GPU driver claims for its device: on odd ranks,
 * or as a root, or both. The data must be right, and the driver must have been queried.
 *
 *   device_memory_check [--late 1] [--reductions 1]
 *
 * --late 1: the program loads the driver after its first broadcasts. --reductions 1: the network
 * serves reductions, so each of them queries the driver, too.
 */
#include <dlfcn.h>

#include "tests/mpi/pattern.h"

static void (*claim)(void* address, uint64_t bytes);
static unsigned long* questions;

static void load_driver(void) {
  void* library = dlopen(FAKE_GPU_DRIVER, RTLD_NOW);
  if (library != NULL) {
    *(void**)&claim = dlsym(library, "fake_gpu_claim");
    questions = dlsym(library, "fake_gpu_questions");
  }
  if (claim == NULL || questions == NULL) {
    fprintf(stderr, "device_memory_check: %s\n", dlerror());
    exit(2);
  }
}

enum { kMost = 300000, kNumbers = 100 };

/* Sums of numbers in place, then all ranks' first numbers; 0 if right. */
static int reduce_and_check(int* numbers, int rank, int size, int key) {
  int wrong = 0;
  for (int i = 0; i < kNumbers; i++) numbers[i] = key + i + rank;
  MPI_Allreduce(MPI_IN_PLACE, numbers, kNumbers, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < kNumbers; i++)
    wrong |= numbers[i] != size * (key + i) + size * (size - 1) / 2;
  numbers[kNumbers] = key + rank;
  MPI_Allgather(numbers + kNumbers, 1, MPI_INT, numbers, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; i++) wrong |= numbers[i] != key + i;
  if (wrong) fprintf(stderr, "device_memory_check: rank %d: a reduction is wrong\n", rank);
  return wrong;
}

int main(int argc, char** argv) {
  const int late = atoi(option(argc, argv, "--late", "0"));
  const int reduces = atoi(option(argc, argv, "--reductions", "0"));
  if (!late) load_driver();
  int rank, size, wrong = 0;
  start_mpi(&argc, &argv, &rank, &size);
  unsigned char* memory = get_memory(kMost);
  if (late) {
    wrong |= broadcast_and_check(memory, 500, 1, 0, MPI_COMM_WORLD);
    wrong |= broadcast_and_check(memory, kMost, 2, 0, MPI_COMM_WORLD);
    load_driver();
  }
  if (rank % 2 == 1) claim(memory, kMost);
  const long count = 20;
  for (long i = 0; i < count; i++) {
    const uint64_t key = mix((uint64_t)i);
    wrong |=
        broadcast_and_check(memory, i % 2 == 0 ? kMost : 500, key, (int)(i % size), MPI_COMM_WORLD);
    const unsigned long before = *questions;
    wrong |= reduce_and_check((int*)memory, rank, size, (int)i);
    if (before == 0 || (reduces && *questions == before)) {
      fprintf(stderr, "device_memory_check: the driver was not queried\n");
      wrong = 1;
    }
  }
  free(memory);
  return finish(wrong, "broadcasts and reductions", count);
}
