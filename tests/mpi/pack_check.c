/* A root that can't pack its data, or a rank that can't unpack it: no rank may get success without
 * the data, and none may wait for ever.
 *
 *   pack_check --size BYTES [--ibcast 1]             packing fails once
 *   pack_check --size BYTES [--ibcast 1] --errors N  packing by coll/cepheus fails from the Nth time
 *                                                    on in one broadcast: an error on every rank,
 *                                                    if there is an Nth time
 *       --behind 1                                   the others enter that broadcast when the root
 *                                                    is in the next one (with --ibcast)
 *   pack_check --size BYTES --unpack 1               unpacking fails once on the last rank, and
 *                                                    only that rank gets an error
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/uio.h>

#include "tests/mpi/pattern.h"

/* All count coll/cepheus's calls alone. */
static int armed;     /* the next one fails */
static int countdown; /* they fail from this one on; 0: none */
static int failed;    /* how many have failed */

/* Open MPI's own messages are packed by the same function. */
static int is_component(void* caller) {
  Dl_info info;
  return dladdr(caller, &info) != 0 && strstr(info.dli_fname, "libcepheus-coll") != NULL;
}

/* Open MPI 5's convertor packs a whole broadcast at once. */
static const int packs_once = OMPI_MAJOR_VERSION >= 5;

/* Replaces Open MPI's own, which packs data that is not contiguous. */
__attribute__((visibility("default"))) int32_t opal_convertor_pack(void* convertor,
                                                                   struct iovec* pieces,
                                                                   uint32_t* count, size_t* bytes) {
  static int32_t (*real)(void*, struct iovec*, uint32_t*, size_t*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "opal_convertor_pack");
  if ((armed || countdown > 0) && is_component(__builtin_return_address(0))) {
    const int fails = armed || countdown == 1;
    armed = 0;
    if (countdown > 1) countdown--;
    if (fails) {
      failed++;
      return -1;
    }
  }
  return real(convertor, pieces, count, bytes);
}

static int armed_to_unpack;

__attribute__((visibility("default"))) int32_t opal_convertor_unpack(void* convertor,
                                                                     struct iovec* pieces,
                                                                     uint32_t* count,
                                                                     size_t* bytes) {
  static int32_t (*real)(void*, struct iovec*, uint32_t*, size_t*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "opal_convertor_unpack");
  if (armed_to_unpack && is_component(__builtin_return_address(0))) {
    armed_to_unpack = 0;
    return -1;
  }
  return real(convertor, pieces, count, bytes);
}

/* With `behind`, the root lets the others enter broadcast 1 when it is in broadcast 2. */
static int broadcast(unsigned char* memory, MPI_Datatype type, int root, int non_blocking,
                     int behind, long i) {
  int rank, ranks, begun = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (behind && i == 1 && rank != root)
    MPI_Recv(&begun, 1, MPI_INT, root, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!non_blocking) return MPI_Bcast(memory, 1, type, root, MPI_COMM_WORLD);
  MPI_Request request;
  const int rc = MPI_Ibcast(memory, 1, type, root, MPI_COMM_WORLD, &request);
  if (behind && i == 2 && rank == root) {
    for (int looks = 0; looks < 1000 && !begun; looks++)
      MPI_Test(&request, &begun, MPI_STATUS_IGNORE);
    for (int to = 0; to < ranks; to++) {
      if (to != root) MPI_Send(&begun, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    }
  }
  return rc == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
}

int main(int argc, char** argv) {
  int rank, ranks, wrong = 0, has_error = 0;
  start_mpi(&argc, &argv, &rank, &ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int size = atoi(option(argc, argv, "--size", "1000"));
  const int non_blocking = atoi(option(argc, argv, "--ibcast", "0"));
  const int errors = atoi(option(argc, argv, "--errors", "0"));
  const int unpack = atoi(option(argc, argv, "--unpack", "0"));
  const int root = atoi(option(argc, argv, "--root", "0"));
  const int behind = atoi(option(argc, argv, "--behind", "0"));
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
    const int is_faulty = i == 1;
    armed = is_faulty && rank == root && errors == 0 && !unpack;
    countdown = is_faulty && rank == root ? errors : 0;
    armed_to_unpack = is_faulty && rank == ranks - 1 && unpack;
    const int ends_in_error = armed_to_unpack;
    const int rc = broadcast(memory, half, root, non_blocking, behind, i);
    countdown = 0;
    if (is_faulty && errors > 0) { /* only the root knows whether an error is expected */
      has_error = rc != MPI_SUCCESS;
      if (has_error) continue;
    }
    if ((rc != MPI_SUCCESS) != ends_in_error) {
      fprintf(stderr, "rank %d: broadcast %ld returns %d\n", rank, i, rc);
      wrong = 1;
    }
    if (ends_in_error) continue;
    for (int at = 0; at < size; at++) packed[at] = memory[at * 2];
    wrong |= after_broadcast(packed, (size_t)size, mix((uint64_t)i), root, MPI_COMM_WORLD);
    if (armed || armed_to_unpack) {
      fprintf(stderr, "pack_check: nothing was packed\n");
      wrong = 1;
    }
  }
  if (errors > 0) {
    MPI_Bcast(&failed, 1, MPI_INT, root, MPI_COMM_WORLD);
    if (has_error != (failed > 0) || (failed == 0 && !(packs_once && errors > 1))) {
      fprintf(stderr, "rank %d: %d times packing failed, error: %d\n", rank, failed, has_error);
      wrong = 1;
    }
  }
  MPI_Type_free(&half);
  free(memory);
  free(packed);
  return finish(wrong, "broadcasts", count);
}
