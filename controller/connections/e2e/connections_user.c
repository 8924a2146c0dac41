/* A program of libcepheus-connections: connections_user listen SERVICE [refuse REASON | ignore], or
 * connections_user connect SERVICE HOST... Its events are lines; a line on its standard input closes what it has. */
#include <cepheus/connections.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char* const kNames[] = {
    "",     "LISTENING", "NOT_LISTENING", "CONNECTING", "CONNECTED", "FAILED",
    "LEFT", "OFFER",     "ESTABLISHED",   "CANCELLED",  "CLOSED"};
static uint64_t connection;

static int fail(void) {
  printf("ERROR %s\n", cepheus_cmd_last_error());
  return 1;
}

static void print_event(const cepheus_cmd_event_t* e) {
  printf("%s %s %06x %.*s|%s\n", kNames[e->type], e->host, e->virtual_qpn, (int)e->data_length,
         e->data == NULL ? "" : (const char*)e->data, e->reason);
  for (size_t i = 0; i < e->member_count; ++i) {
    const cepheus_cmd_member_t* m = &e->members[i];
    printf("MEMBER %s %02x %.*s\n", m->host, m->name[0], (int)m->data_length, (const char*)m->data);
  }
}

static cepheus_cmd_status_t answer(cepheus_cmd_client_h client, int argc, char** argv) {
  if (argc > 3 && strcmp(argv[3], "ignore") == 0) return CEPHEUS_CMD_OK;
  if (argc > 4) return cepheus_cmd_refuse(client, connection, argv[4]);
  unsigned char name[CEPHEUS_CMD_NAME_SIZE];
  memset(name, 0xAB, sizeof name);
  char data[64];
  const int length = snprintf(data, sizeof data, "receiver %d", (int)getpid());
  return cepheus_cmd_accept(client, connection, name, data, (size_t)length);
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc < 3) return 2;
  cepheus_cmd_client_h client;
  if (cepheus_cmd_open(NULL, &client) != CEPHEUS_CMD_OK) return fail();
  const int sends = strcmp(argv[1], "connect") == 0;
  const cepheus_cmd_status_t begun =
      sends ? cepheus_cmd_connect(client, 7, argv[2], (const char* const*)argv + 3,
                                  (size_t)argc - 3, "from the sender", 15, 0)
            : cepheus_cmd_listen(client, argv[2]);
  if (begun != CEPHEUS_CMD_OK) return fail();
  struct pollfd waits[2] = {{.fd = cepheus_cmd_fd(client)}, {.fd = STDIN_FILENO, .events = POLLIN}};
  for (;;) {
    cepheus_cmd_event_t event;
    cepheus_cmd_status_t status;
    while ((status = cepheus_cmd_next(client, &event)) == CEPHEUS_CMD_OK) {
      print_event(&event);
      if (event.connection != 0) connection = event.connection;
      if (event.type == CEPHEUS_CMD_OFFER && answer(client, argc, argv) != CEPHEUS_CMD_OK)
        return fail();
    }
    if (status != CEPHEUS_CMD_NO_EVENT) return fail();
    waits[0].events = cepheus_cmd_poll_events(client);
    if (poll(waits, 2, -1) < 0) return 1;
    char line[16];
    if (waits[1].revents != 0) {
      if (read(STDIN_FILENO, line, sizeof line) <= 0) break;
      if (cepheus_cmd_close(client, connection) != CEPHEUS_CMD_OK) return fail();
    }
  }
  cepheus_cmd_destroy(client);
  return 0;
}
