/* One program sends a file's worth of text to programs on other hosts that it knows by host and
 * service name: the connection daemons set the sender group up (MC-RDMA, III-A).
 *
 *     sender_group receive SERVICE                 on each receiver, first
 *     sender_group send SERVICE TEXT HOST...       on the sender: "10.0.0.2" "10.0.0.3"
 *
 * Each host runs cepheus-cmd(1). A receiver answers the offer with its member's name and its region.
 * The sender gets them, and the group's virtual QPN, in one event.
 */
#include <cepheus/connections.h>
#include <mcast/senders.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRegion = 1, kMemoryBytes = 4096, kMostMembers = CEPHEUS_CMD_MAX_RECEIVERS + 1 };

static cepheus_cmd_client_h daemon_client;
static mcast_context_h context;
static mcast_group_h group;
static char memory[kMemoryBytes];

static void must(mcast_status_t status, const char* what) {
  if (status == MCAST_OK || status == MCAST_INPROGRESS) return;
  fprintf(stderr, "%s: %s\n", what, mcast_last_error());
  exit(1);
}

static void must_cmd(cepheus_cmd_status_t status, const char* what) {
  if (status == CEPHEUS_CMD_OK) return;
  fprintf(stderr, "%s: %s\n", what, cepheus_cmd_last_error());
  exit(1);
}

/* The next event of the daemon. One that ends the connection too early ends the program. */
static cepheus_cmd_event_t next_event(void) {
  cepheus_cmd_event_t event;
  cepheus_cmd_status_t status;
  while ((status = cepheus_cmd_next(daemon_client, &event)) == CEPHEUS_CMD_NO_EVENT) {
    if (group != NULL) mcast_progress(context); /* a member answers while it waits */
    struct pollfd wait = {cepheus_cmd_fd(daemon_client), cepheus_cmd_poll_events(daemon_client), 0};
    poll(&wait, 1, group == NULL ? -1 : 1);
  }
  must_cmd(status, "cepheus_cmd_next");
  const int is_early = event.reason != NULL && event.reason[0] != 0;
  if (!is_early || event.type == CEPHEUS_CMD_LEFT) return event;
  fprintf(stderr, "%s: %s\n", event.host, event.reason);
  exit(1);
}

/* `virtual_qpn`: the sender's, from its daemon; receivers need none. */
static void create_group(uint32_t virtual_qpn) {
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = MCAST_LANE_BULK;
  params.sender_group = 1;
  params.virtual_qpn = virtual_qpn;
  must(mcast_context_create(NULL, &context), "mcast_context_create");
  must(mcast_group_create(context, &params, &group), "mcast_group_create");
}

static void on_done(mcast_op_t* op, mcast_status_t status, size_t length, uint32_t imm) {
  (void)length, (void)imm;
  must(status, "the transfer");
  *(int*)op->user = 1;
}

static void wait_for_group(void) {
  mcast_status_t status;
  while ((status = mcast_group_test(group)) == MCAST_INPROGRESS) mcast_progress(context);
  must(status, "the group");
}

static void send_text(const char* service, const char* text, const char* const* hosts,
                      size_t host_count) {
  must_cmd(cepheus_cmd_connect(daemon_client, 1, service, hosts, host_count, NULL, 0, 0),
           "cepheus_cmd_connect");
  cepheus_cmd_event_t event;
  do event = next_event();
  while (event.type != CEPHEUS_CMD_CONNECTED);

  static mcast_member_t names[kMostMembers];
  static mcast_region_t regions[CEPHEUS_CMD_MAX_RECEIVERS];
  const size_t receivers = event.member_count;
  const uint32_t virtual_qpn = event.virtual_qpn;
  create_group(virtual_qpn);
  must(mcast_group_member(group, &names[0]), "mcast_group_member");
  for (size_t i = 0; i < receivers; ++i) {
    memcpy(&names[i + 1], event.members[i].name, sizeof names[0]);
    if (event.members[i].data_length != sizeof regions[0]) exit(1);
    memcpy(&regions[i], event.members[i].data, sizeof regions[0]);
  }
  must(mcast_group_lead_regions(group, names, receivers + 1, regions, receivers),
       "mcast_group_lead_regions");
  wait_for_group();

  int is_done = 0;
  mcast_op_t op = {on_done, &is_done};
  const uint32_t length = (uint32_t)strlen(text) + 1;
  must(mcast_write(group, text, length, NULL, kRegion, 0, &length, &op), "mcast_write");
  while (!is_done) mcast_progress(context);
  printf("%zu hosts have it, by virtual QPN %#x\n", receivers, virtual_qpn);
  /* The group ends for all when its leader destroys it, so the sender waits for the receivers. */
  for (size_t left = 0; left < receivers;) left += next_event().type == CEPHEUS_CMD_LEFT;
}

static void receive_text(const char* service) {
  create_group(0);
  must(mcast_region_publish(group, kRegion, memory, sizeof memory), "mcast_region_publish");
  mcast_member_t name;
  mcast_region_t region;
  size_t count = 1;
  must(mcast_group_member(group, &name), "mcast_group_member");
  must(mcast_group_regions(group, &region, &count), "mcast_group_regions");
  int is_done = 0;
  mcast_op_t op = {on_done, &is_done};
  must(mcast_recv(group, NULL, 0, NULL, &op), "mcast_recv"); /* notice of the WRITE */

  must_cmd(cepheus_cmd_listen(daemon_client, service), "cepheus_cmd_listen");
  cepheus_cmd_event_t event;
  while ((event = next_event()).type != CEPHEUS_CMD_ESTABLISHED) {
    if (event.type == CEPHEUS_CMD_LISTENING) printf("listening\n"), fflush(stdout);
    if (event.type == CEPHEUS_CMD_OFFER) {
      must_cmd(cepheus_cmd_accept(daemon_client, event.connection, &name, &region, sizeof region),
               "cepheus_cmd_accept");
    }
  }
  wait_for_group();
  while (!is_done) mcast_progress(context);
  printf("%s\n", memory);
  must_cmd(cepheus_cmd_close(daemon_client, event.connection), "cepheus_cmd_close");
}

int main(int argc, char** argv) {
  const int sends = argc > 4 && strcmp(argv[1], "send") == 0;
  if (!sends && (argc != 3 || strcmp(argv[1], "receive") != 0)) {
    fprintf(stderr, "usage: sender_group receive SERVICE | send SERVICE TEXT HOST...\n");
    return 2;
  }
  if (sends && (argc - 4 > CEPHEUS_CMD_MAX_RECEIVERS || strlen(argv[3]) >= kMemoryBytes)) return 2;
  must_cmd(cepheus_cmd_open(NULL, &daemon_client), "cepheus_cmd_open");
  if (sends) {
    send_text(argv[2], argv[3], (const char* const*)argv + 4, (size_t)argc - 4);
  } else {
    receive_text(argv[2]);
  }
  mcast_group_destroy(group);
  mcast_context_destroy(context);
  cepheus_cmd_destroy(daemon_client);
  return 0;
}
