/* Broadcasts by MPI, and messages of a group of the program's own. Its context has other settings
 * than coll/cepheus's, and a port of the same NIC.
 *
 *   own_group_check [--first own|mpi] [--rounds N]
 *
 * "own": the context is opened before MPI_Init and closed after MPI_Finalize. "mpi": it is opened
 * after the first broadcasts and closed before the last ones. Exit 0 and a line "ok: ..." if all
 * was right.
 */
#include <mcast/mcast.h>
#include <mcast/query.h>

#include "tests/mpi/pattern.h"

enum { kMessage = 2000, kLarge = 300000 };
static const double SECONDS = 30; /* for the other ranks' earlier work */

static int rank, size;
static mcast_context_h context;
static mcast_group_h group;
static unsigned char arrived[kMessage];
static int arrivals, is_progressing, is_foreign;

static void must(mcast_status_t status, const char* what) {
  if (status == MCAST_OK) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, mcast_last_error());
  exit(3); /* perhaps before MPI_Init */
}

static mcast_status_t on_message(void* arg, void* data, size_t length, uint32_t imm) {
  (void)arg, (void)imm;
  if (!is_progressing) is_foreign = 1; /* coll/cepheus made progress on our context */
  if (length == kMessage) memcpy(arrived, data, length);
  ++arrivals;
  return MCAST_OK;
}

static void progress(double end, const char* what) {
  is_progressing = 1;
  mcast_progress(context);
  is_progressing = 0;
  if (MPI_Wtime() < end) return;
  fprintf(stderr, "rank %d: no %s within %.0f s\n", rank, what, SECONDS);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void open_context(void) {
  mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
  params.register_timeout_ms = 60000; /* a busy machine must not look like a broken fabric */
  params.progress_timeout_ms = 30000;
  params.max_eager_memory = 32 << 20;
  must(mcast_context_create(&params, &context), "mcast_context_create");
}

static void set_up_group(void) {
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.recv_cb = on_message;
  must(mcast_group_create(context, &params, &group), "mcast_group_create");
  mcast_member_t name, *names = get_memory((size_t)size * sizeof name);
  must(mcast_group_member(group, &name), "mcast_group_member");
  MPI_Allgather(&name, sizeof name, MPI_BYTE, names, sizeof name, MPI_BYTE, MPI_COMM_WORLD);
  if (rank == 0) must(mcast_group_lead(group, names, (size_t)size), "mcast_group_lead");
  free(names);
  mcast_status_t status;
  const double end = MPI_Wtime() + SECONDS;
  while ((status = mcast_group_test(group)) == MCAST_INPROGRESS) progress(end, "group");
  must(status, "the group");
}

static int send_and_check(int round) {
  const uint64_t key = mix((uint64_t)round);
  const int sender = round % size, expected = arrivals + 1;
  const double end = MPI_Wtime() + SECONDS;
  int wrong = 0;
  if (rank == sender) {
    unsigned char message[kMessage];
    fill(message, kMessage, key);
    must(mcast_send_eager(group, message, kMessage, 0), "mcast_send_eager");
    while (mcast_group_outstanding(group) > 0) progress(end, "acknowledgement");
  } else {
    while (arrivals < expected) progress(end, "message");
    wrong = check(arrived, kMessage, key) != kMessage;
    if (wrong) fprintf(stderr, "rank %d: message %d is wrong\n", rank, round);
  }
  must(mcast_group_test(group), "the group in operation");
  MPI_Barrier(MPI_COMM_WORLD); /* the next sender begins when all have this one's message */
  return wrong;
}

static int broadcast(unsigned char* memory, int round) {
  const uint64_t key = mix((uint64_t)(1000 + round));
  return broadcast_and_check(memory, kMessage, key, round % size, MPI_COMM_WORLD) |
         broadcast_and_check(memory, kLarge, key + 1, round % size, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  const int is_own_first = strcmp(option(argc, argv, "--first", "own"), "own") == 0;
  const int rounds = atoi(option(argc, argv, "--rounds", "20"));
  if (is_own_first) open_context();
  start_mpi(&argc, &argv, &rank, &size);
  unsigned char* memory = get_memory(kLarge);
  int wrong = 0;
  if (!is_own_first) {
    wrong |= broadcast(memory, 0);
    open_context();
  }
  set_up_group();
  for (int i = 0; i < rounds; i++) wrong |= send_and_check(i) | broadcast(memory, i);
  mcast_group_destroy(group);
  if (!is_own_first) mcast_context_destroy(context);
  for (int i = 0; i < size; i++) wrong |= broadcast(memory, i);
  if (is_foreign) fprintf(stderr, "rank %d: a callback outside of its context's progress\n", rank);
  const int code = conclude(wrong | is_foreign, "rounds", rounds);
  free(memory);
  MPI_Finalize();
  if (is_own_first) mcast_context_destroy(context);
  return code;
}
