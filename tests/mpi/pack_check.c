/* A root whose data can't be packed once: whatever serves the broadcast instead, no rank may be told
 * success without the data.
 *
 *   pack_check --size BYTES [--ibcast 1]
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/uio.h>

#include "tests/mpi/pattern.h"

static int armed;

/* Comes before Open MPI's own, which packs what is not contiguous. */
__attribute__((visibility("default"))) int32_t opal_convertor_pack(void* convertor,
                                                                   struct iovec* pieces,
                                                                   uint32_t* count, size_t* bytes) {
  static int32_t (*real)(void*, struct iovec*, uint32_t*, size_t*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "opal_convertor_pack");
  if (armed) {
    armed = 0;
    return -1;
  }
  return real(convertor, pieces, count, bytes);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int size = atoi(option(argc, argv, "--size", "1000"));
  const int non_blocking = atoi(option(argc, argv, "--ibcast", "0"));
  const int root = 0;
  MPI_Datatype half; /* every second byte */
  MPI_Type_vector(size, 1, 2, MPI_BYTE, &half);
  MPI_Type_commit(&half);
  unsigned char* memory = get_memory((size_t)size * 2);
  unsigned char* packed = get_memory((size_t)size);
  const long count = 4;
  for (long i = 0; i < count; i++) {
    memset(memory, 0xEE, (size_t)size * 2);
    fill(packed, (size_t)size, mix((uint64_t)i));
    for (int at = 0; rank == root && at < size; at++) memory[at * 2] = packed[at];
    armed = rank == root && i == 1;
    if (non_blocking) {
      MPI_Request request;
      MPI_Ibcast(memory, 1, half, root, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Bcast(memory, 1, half, root, MPI_COMM_WORLD);
    }
    for (int at = 0; at < size; at++) packed[at] = memory[at * 2];
    wrong |= after_broadcast(packed, (size_t)size, mix((uint64_t)i), root, MPI_COMM_WORLD);
    if (armed) {
      fprintf(stderr, "pack_check: nothing was packed\n");
      wrong = 1;
    }
  }
  const int code = conclude(wrong, "broadcasts", count);
  MPI_Type_free(&half);
  free(memory);
  free(packed);
  MPI_Finalize();
  return code;
}
