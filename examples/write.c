/* A value that all members keep, and that any of them changes for all: multicast WRITE.
 *
 *     write RANK RANKS DIRECTORY [DEVICE]
 *
 * on each of RANKS hosts. The directory is shared: each member leaves its name there, and later a
 * file that says that it is done. Every member publishes a page. Rank 0 writes a line into all
 * pages, and then the last rank writes another one.
 */
#include <mcast/write.h>
#include <string.h>

#include "examples/meeting.h"

enum { kRegion = 1, kPage = 4096, kLine = 64 };

/* The line is in everybody's page, and everybody knows, when this returns. */
static void write_line(mcast_group_h group, uint64_t offset, const char* text) {
  char line[kLine] = "";
  snprintf(line, sizeof line, "%s", text);
  operation_t write = begun();
  const uint32_t imm = 1;
  mcast_status_t status;
  while ((status = mcast_write(group, line, sizeof line, NULL, kRegion, offset, &imm, &write.op)) ==
         MCAST_ERR_AGAIN) {
    mcast_progress(context);
  }
  check(status, "mcast_write");
  wait_for(&write);
}

int main(int argc, char** argv) {
  check_arguments(argc, argv);
  const int rank = atoi(argv[1]), ranks = atoi(argv[2]);
  const char* directory = argv[3];
  static char page[kPage];

  open_context(argv[4]);
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = MCAST_LANE_BULK;
  mcast_group_h group;
  check(mcast_group_create(context, &params, &group), "mcast_group_create");
  /* Before the group is set up: then it is in force everywhere as soon as the group is active. */
  check(mcast_region_publish(group, kRegion, page, sizeof page), "mcast_region_publish");

  /* Each line that another member writes needs a receive without a buffer. */
  const int last = ranks - 1;
  operation_t first = begun(), second = begun();
  if (rank != 0) check(mcast_recv(group, NULL, 0, NULL, &first.op), "mcast_recv");
  if (rank != last) check(mcast_recv(group, NULL, 0, NULL, &second.op), "mcast_recv");
  set_up(group, rank, ranks, directory);

  if (rank == 0) write_line(group, 0, "rank 0 was here");
  if (rank != 0) wait_for(&first);
  if (rank == last) write_line(group, kLine, "so was the last one");
  if (rank != last) wait_for(&second);

  printf("rank %d: '%s' '%s'\n", rank, page, page + kLine);
  const int has_first = strcmp(page, "rank 0 was here") == 0;
  const int has_second = strcmp(page + kLine, "so was the last one") == 0;
  finish(group, rank, ranks, directory);
  mcast_context_destroy(context);
  return (rank == 0 || has_first) && (rank == last || has_second) ? 0 : 1;
}
