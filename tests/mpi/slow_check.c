/* A root that rarely calls MPI, with many communicators alive, when another rank needs a
 * retransmission from it.
 *
 *   slow_check --until FILE --alive N [--failed FILE]
 *
 * Two ranks. Rank 0 prints "started". Once FILE exists it sends a small broadcast on one of the N
 * communicators, prints "sent", and prints "looks N": the number of its tests until rank 1 had the
 * data, counted from the moment when the other FILE exists.
 */
#include <sys/timerfd.h>
#include <unistd.h>

#include "tests/mpi/file_watch.h"
#include "tests/mpi/pattern.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, wrong = 0, done = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* go = option(argc, argv, "--until", "");
  const char* failed = option(argc, argv, "--failed", "");
  const long alive = atol(option(argc, argv, "--alive", "200"));
  unsigned char memory[100];
  MPI_Comm* comms = get_memory((size_t)alive * sizeof(MPI_Comm));
  for (long i = 0; i < alive; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    wrong |= broadcast_and_check(memory, sizeof memory, mix((uint64_t)i), 0, comms[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    print_now("started");
    must_come(go);
    wrong |= broadcast_and_check(memory, sizeof memory, 1, 0, comms[alive / 2]);
    print_now("sent");
    MPI_Request request;
    MPI_Irecv(&done, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
    long looks = 0;
    /* It tests every 10 ms: a program that computes in between. A busy machine has answered then. */
    const struct itimerspec pace = {{0, 10000000}, {0, 10000000}};
    const int ticker = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    timerfd_settime(ticker, 0, &pace, NULL);
    for (int ended = 0, counts = 0; !ended; looks += counts) {
      uint64_t ticks;
      if (!counts) counts = access(failed, F_OK) == 0;
      MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
      if (read(ticker, &ticks, sizeof ticks) < 0) break;
    }
    close(ticker);
    printf("looks %ld\n", looks);
  } else if (rank == 1) {
    wrong |= broadcast_and_check(memory, sizeof memory, 1, 0, comms[alive / 2]);
    MPI_Send(&done, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  }
  for (long i = 0; i < alive; i++) MPI_Comm_free(&comms[i]);
  free(comms);
  return finish(wrong, "communicators", alive);
}
