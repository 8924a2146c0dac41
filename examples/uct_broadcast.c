/* Broadcasts by UCX: a program that knows UCT and nothing else of Cepheus.
 *
 *     uct_broadcast TRANSPORT RANK RANKS SOCKET [lose]
 *
 * on each of 2 to 8 hosts; TRANSPORT is libuct_rc_mcast.so, SOCKET a path that they share. Each
 * rank in its turn sends a line to all others. With "lose" the last rank then ends without a word,
 * and the others report it.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <uct/api/uct.h>
#include <unistd.h>
/* uct.h first: the next one insists on it. */
#include <ucs/async/async_fwd.h>

#define CHECK(is_good) check(is_good, #is_good)

enum { kMostRanks = 8, kLineId = 1, kLine = 32, kMostAddress = 64 };
static int rank, ranks, lines;
static uct_md_h md;
static uct_worker_h worker;
static uct_iface_h iface; /* a member, and later its group */
static uct_ep_h ep;

static void check(int is_good, const char* what) {
  if (is_good) return;
  fprintf(stderr, "rank %d: not so: %s\n", rank, what);
  exit(1);
}

static struct sockaddr_un socket_of(const char* path, int of) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s%d", path, of);
  return address;
}

/* `all` gets the `size` bytes of each rank, in the order of ranks. */
static void exchange(int fd, const char* path, const void* own, size_t size, char* all) {
  struct {
    int from;
    char bytes[kMostAddress];
  } letter = {rank, {0}};
  memcpy(letter.bytes, own, size);
  for (int i = 0; i < ranks; ++i) {
    const struct sockaddr_un to = socket_of(path, i);
    while (sendto(fd, &letter, sizeof letter, 0, (void*)&to, sizeof to) < 0) sched_yield();
  }
  for (int i = 0; i < ranks; ++i) {
    CHECK(recv(fd, &letter, sizeof letter, 0) == sizeof letter);
    memcpy(all + size * letter.from, letter.bytes, size);
  }
}

static ucs_status_t on_line(void* arg, void* data, size_t length, unsigned flags) {
  (void)arg, (void)length, (void)flags;
  const char* const line = (const char*)data + sizeof(uint64_t); /* behind am_short's header */
  printf("rank %d received: %s\n", rank, line);
  ++lines;
  return UCS_OK;
}

static void open_domain(const char* transport) {
  uct_component_h* components;
  uct_md_config_t* config;
  unsigned count;
  check(dlopen(transport, RTLD_NOW) != NULL, transport);
  CHECK(uct_query_components(&components, &count) == UCS_OK);
  for (unsigned i = 0; i < count; ++i) {
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    CHECK(uct_component_query(components[i], &attr) == UCS_OK);
    if (strcmp(attr.name, "mcast") != 0) continue;
    CHECK(uct_md_config_read(components[i], NULL, NULL, &config) == UCS_OK);
    CHECK(uct_md_open(components[i], "mcast", config, &md) == UCS_OK);
    uct_config_release(config);
  }
  uct_release_component_list(components);
  CHECK(md != NULL);
}

static void open_member(void) {
  uct_iface_config_t* config;
  const uct_iface_params_t params = {
      .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE,
      .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
      .mode.device = {.tl_name = "rc_mcast", .dev_name = "any"}};
  CHECK(uct_md_iface_config_read(md, "rc_mcast", NULL, NULL, &config) == UCS_OK);
  CHECK(uct_iface_open(md, worker, &params, config, &iface) == UCS_OK);
  uct_config_release(config);
  CHECK(uct_iface_set_am_handler(iface, kLineId, on_line, NULL, 0) == UCS_OK);
}

/* The group's address is the number of members, and then their addresses; the first one leads. */
static void join_group(int fd, const char* path) {
  uct_iface_attr_t attr;
  char own[kMostAddress], list[sizeof(uint32_t) + kMostRanks * kMostAddress];
  CHECK(uct_iface_query(iface, &attr) == UCS_OK && attr.iface_addr_len <= kMostAddress);
  CHECK(uct_iface_get_address(iface, (uct_iface_addr_t*)own) == UCS_OK);
  memcpy(list, &(uint32_t){ranks}, sizeof(uint32_t));
  exchange(fd, path, own, attr.iface_addr_len, list + sizeof(uint32_t));
  const uct_ep_params_t params = {
      .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_IFACE_ADDR,
      .iface = iface,
      .iface_addr = (const uct_iface_addr_t*)list};
  CHECK(uct_ep_create(&params, &ep) == UCS_OK);
}

/* Also waits for the group. */
static void flush(void) {
  ucs_status_t status;
  while ((status = uct_ep_flush(ep, 0, NULL)) == UCS_INPROGRESS) uct_iface_progress(iface);
  CHECK(status == UCS_OK);
}

/* UCS_ERR_NO_RESOURCE: a queue is full, or the hosts of a host-sync fabric set their PSNs first. A
 * program that has other work queues the message by uct_ep_pending_add(). */
static void send_line(const char* line) {
  ucs_status_t status;
  while ((status = uct_ep_am_short(ep, kLineId, 0, line, kLine)) == UCS_ERR_NO_RESOURCE) {
    uct_iface_progress(iface);
  }
  CHECK(status == UCS_OK);
}

/* A member sends once it has received all lines before. */
static void take_turns(void) {
  for (int source = 0; source < ranks; ++source) {
    char line[kLine];
    snprintf(line, sizeof line, "a line of rank %d", source);
    if (source == rank) send_line(line);
    flush();
    while (source != rank && lines < source + (source < rank)) {
      uct_iface_progress(iface);
      CHECK(uct_ep_check(ep, 0, NULL) == UCS_OK); /* a lost member sends nothing any more */
    }
  }
}

int main(int argc, char** argv) {
  if (argc < 5 || (rank = atoi(argv[2])) < 0 || (ranks = atoi(argv[3])) > kMostRanks) return 2;
  if (rank >= ranks || ranks < 2) return 2;
  const struct sockaddr_un here = socket_of(argv[4], rank);
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  CHECK(bind(fd, (void*)&here, sizeof here) == 0);
  setenv("UCX_MCAST_DEVICES", "any", 0);
  setenv("UCX_RC_MCAST_LOST_MEMBER", "end-group", 0);
  setenv("UCX_RC_MCAST_REGISTER_TIMEOUT", "60s", 0); /* on a busy machine, too */
  ucs_async_context_t* async;
  CHECK(ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async) == UCS_OK);
  CHECK(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker) == UCS_OK);
  open_domain(argv[1]);
  open_member();
  join_group(fd, argv[4]);
  flush();
  take_turns();
  if (argc == 5) {
    /* The group ends for all when its leader destroys its endpoint. */
    exchange(fd, argv[4], "", 1, (char[kMostRanks]){0});
  } else if (rank == ranks - 1) {
    _exit(0);
  } else {
    ucs_status_t status;
    while ((status = uct_ep_check(ep, 0, NULL)) >= 0) uct_iface_progress(iface);
    printf("rank %d: a member was lost: %s\n", rank, ucs_status_string(status));
  }
  uct_ep_destroy(ep);
  uct_iface_close(iface);
  uct_worker_destroy(worker);
  ucs_async_context_destroy(async);
  uct_md_close(md);
  return 0;
}
