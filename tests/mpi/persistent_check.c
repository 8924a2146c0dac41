/* Persistent broadcasts (MPI_Bcast_init of MPI-4; Open MPI 4.1 calls it MPIX_Bcast_init): made
 * once, started repeatedly beside other broadcasts, every byte checked. Prints the MPI_T variables
 * of coll/cepheus.
 *
 *   persistent_check [--count N]
 *   persistent_check --orders N     N rounds in which even and odd ranks start them in opposite
 *                                   orders, among each other and around an MPI_Bcast
 */
#include <mpi.h>
/* After mpi.h, which it needs. */
#include <mpi-ext.h>

#include "tests/mpi/pattern.h"
#include "tests/mpi/variables.h"

#if OMPI_MAJOR_VERSION < 5
#define MPI_Bcast_init MPIX_Bcast_init
#endif

enum { kRequests = 4 };
static const int kBytes[kRequests] = {100, 70000, 0, 9000};

/* Two persistent broadcasts of `first` and `second` bytes, and a blocking one. */
static int in_opposite_orders(long round, int first, int second, int second_root, int rank) {
  const int bytes[2] = {first, second}, roots[2] = {0, second_root};
  unsigned char* memory[2];
  unsigned char between[64];
  MPI_Request requests[2];
  int wrong = 0;
  for (int i = 0; i < 2; i++) {
    memory[i] = get_memory((size_t)bytes[i]);
    before_broadcast(memory[i], (size_t)bytes[i], mix((uint64_t)(round * 2 + i)), roots[i],
                     MPI_COMM_WORLD);
    MPI_Bcast_init(memory[i], bytes[i], MPI_BYTE, roots[i], MPI_COMM_WORLD, MPI_INFO_NULL,
                   &requests[i]);
  }
  const int odd = rank % 2;
  MPI_Start(&requests[odd]);
  if (odd) MPI_Start(&requests[!odd]);
  wrong |= broadcast_and_check(between, sizeof between, (uint64_t)round, 0, MPI_COMM_WORLD);
  if (!odd) MPI_Start(&requests[!odd]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 2; i++) {
    wrong |= after_broadcast(memory[i], (size_t)bytes[i], mix((uint64_t)(round * 2 + i)), roots[i],
                             MPI_COMM_WORLD);
    MPI_Request_free(&requests[i]);
    free(memory[i]);
  }
  return wrong;
}

int main(int argc, char** argv) {
  int provided = 0, rank, size, wrong = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  start_mpi(&argc, &argv, &rank, &size);
  const long orders = atol(option(argc, argv, "--orders", "0"));
  const long count = orders > 0 ? 0 : atol(option(argc, argv, "--count", "20"));
  watch_variables();
  for (long round = 0; round < orders; round++) {
    wrong |= in_opposite_orders(round, 1000, 1000, 0, rank); /* of one root and size */
    wrong |= in_opposite_orders(round, 100, 70000, 0, rank); /* of different lengths */
    wrong |= in_opposite_orders(round, 1000, 1000, 1, rank); /* of different roots */
  }

  unsigned char* memory[kRequests];
  MPI_Request requests[kRequests];
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_BYTE, &pair);
  MPI_Type_commit(&pair);
  for (int i = 0; i < kRequests; i++) {
    memory[i] = get_memory((size_t)kBytes[i]);
    MPI_Bcast_init(memory[i], kBytes[i] / 2, pair, i % size, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &requests[i]);
  }
  MPI_Type_free(&pair); /* the requests still need it */
  for (long round = 0; round < count; round++) {
    for (int i = 0; i < kRequests; i++) {
      before_broadcast(memory[i], (size_t)kBytes[i], mix((uint64_t)(round * kRequests + i)),
                       i % size, MPI_COMM_WORLD);
    }
    if (round % 2 == 0) {
      MPI_Startall(kRequests, requests);
    } else {
      for (int i = 0; i < kRequests; i++) MPI_Start(&requests[i]);
    }
    unsigned char between[64];
    if (round % 3 == 0)
      wrong |= broadcast_and_check(between, 64, (uint64_t)round, 0, MPI_COMM_WORLD);
    MPI_Waitall(kRequests, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kRequests; i++) {
      wrong |= after_broadcast(memory[i], (size_t)kBytes[i], mix((uint64_t)(round * kRequests + i)),
                               i % size, MPI_COMM_WORLD);
    }
  }
  for (int i = 0; i < kRequests; i++) {
    MPI_Request_free(&requests[i]);
    free(memory[i]);
  }
  if (rank == 0) print_variables();
  const int code = conclude(wrong, "rounds of persistent broadcasts", count + orders);
  MPI_T_finalize(); /* first: Open MPI 4.1 crashes the other way round */
  MPI_Finalize();
  return code;
}
