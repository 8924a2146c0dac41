/* A line from each process to all others: eager messages of a group.
 *
 *     group RANK RANKS DIRECTORY [DEVICE]
 *
 * on each of RANKS hosts. The directory is shared: each member leaves its name there, and later a
 * file that says that it is done. The ranks speak one after the other: a group has one source at a
 * time.
 */
#include <mcast/query.h>
#include <string.h>

#include "examples/meeting.h"

static int received; /* messages of others */

/* A message has come. MCAST_OK gives its buffer back. */
static mcast_status_t on_message(void* arg, void* data, size_t length, uint32_t imm) {
  (void)imm;
  printf("rank %d heard '%.*s'\n", *(int*)arg, (int)length, (const char*)data);
  ++received;
  return MCAST_OK;
}

static void send_line(mcast_group_h group, int rank) {
  char line[64];
  const int length = snprintf(line, sizeof line, "rank %d is here", rank);
  mcast_status_t status;
  while ((status = mcast_send_eager(group, line, (size_t)length, 0)) == MCAST_ERR_AGAIN) {
    mcast_progress(context);
  }
  check(status, "mcast_send_eager");
  while (mcast_group_outstanding(group) > 0) mcast_progress(context);
}

int main(int argc, char** argv) {
  check_arguments(argc, argv);
  int rank = atoi(argv[1]);
  const int ranks = atoi(argv[2]);
  const char* directory = argv[3];

  open_context(argv[4]);
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.recv_cb = on_message;
  params.recv_arg = &rank;
  params.lost_member = MCAST_LOST_MEMBER_ENDS_GROUP; /* all wait for each speaker */
  mcast_group_h group;
  check(mcast_group_create(context, &params, &group), "mcast_group_create");
  set_up(group, rank, ranks, directory);
  for (int speaker = 0; speaker < ranks; ++speaker) {
    if (speaker == rank) send_line(group, rank);
    const int expected = speaker < rank ? speaker + 1 : speaker;
    while (received < expected) {
      mcast_progress(context);
      check(mcast_group_test(group), "the group");
    }
  }
  finish(group, rank, ranks, directory);
  mcast_context_destroy(context);
  return received == ranks - 1 ? 0 : 1;
}
