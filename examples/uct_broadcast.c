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

enum { kMostRanks = 8, kLineId = 1, kLine = 32, kMostAddress = 64 };
static int rank, ranks, lines;

static void check(int is_good, const char* what) {
  if (is_good) return;
  fprintf(stderr, "rank %d: %s failed\n", rank, what);
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
    while (sendto(fd, &letter, sizeof letter, 0, (struct sockaddr*)&to, sizeof to) < 0)
      sched_yield();
  }
  for (int i = 0; i < ranks; ++i) {
    check(recv(fd, &letter, sizeof letter, 0) == sizeof letter, "recv");
    memcpy(all + size * letter.from, letter.bytes, size);
  }
}

static ucs_status_t on_line(void* arg, void* data, size_t length, unsigned flags) {
  (void)arg, (void)length, (void)flags;
  printf("rank %d received: %s\n", rank,
         (const char*)data + sizeof(uint64_t)); /* behind the header of am_short */
  ++lines;
  return UCS_OK;
}

static uct_md_h open_domain(const char* transport) {
  uct_component_h* components;
  uct_md_config_t* config;
  uct_md_h md = NULL;
  unsigned count;
  check(dlopen(transport, RTLD_NOW) != NULL, transport);
  check(uct_query_components(&components, &count) == UCS_OK, "uct_query_components");
  for (unsigned i = 0; i < count; ++i) {
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    if (uct_component_query(components[i], &attr) != UCS_OK || strcmp(attr.name, "mcast") != 0)
      continue;
    check(uct_md_config_read(components[i], NULL, NULL, &config) == UCS_OK, "uct_md_config_read");
    check(uct_md_open(components[i], "mcast", config, &md) == UCS_OK, "uct_md_open");
    uct_config_release(config);
  }
  uct_release_component_list(components);
  check(md != NULL, "loading the transport");
  return md;
}

int main(int argc, char** argv) {
  if (argc < 5 || (rank = atoi(argv[2])) < 0 || (ranks = atoi(argv[3])) > kMostRanks ||
      rank >= ranks || ranks < 2)
    return 2;
  ucs_async_context_t* async;
  uct_worker_h worker;
  uct_iface_config_t* config;
  uct_iface_h iface;                     /* a member, and later its group */
  setenv("UCX_MCAST_DEVICES", "any", 0); /* uct_config_modify()'s names differ between versions */
  setenv("UCX_RC_MCAST_LOST_MEMBER", "end-group", 0);
  setenv("UCX_RC_MCAST_REGISTER_TIMEOUT", "60s", 0); /* on a busy machine, too */
  const uct_md_h md = open_domain(argv[1]);
  check(ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async) == UCS_OK,
        "ucs_async_context_create");
  check(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker) == UCS_OK, "uct_worker_create");
  check(uct_md_iface_config_read(md, "rc_mcast", NULL, NULL, &config) == UCS_OK,
        "uct_md_iface_config_read");
  const uct_iface_params_t open = {
      .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE,
      .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
      .mode.device = {.tl_name = "rc_mcast", .dev_name = "any"}};
  check(uct_iface_open(md, worker, &open, config, &iface) == UCS_OK, "uct_iface_open");
  uct_config_release(config);
  check(uct_iface_set_am_handler(iface, kLineId, on_line, NULL, 0) == UCS_OK,
        "uct_iface_set_am_handler");

  /* The group's address is the number of members, and then their addresses; the first one leads. */
  uct_iface_attr_t attr;
  char own[kMostAddress], list[sizeof(uint32_t) + kMostRanks * kMostAddress];
  check(uct_iface_query(iface, &attr) == UCS_OK && attr.iface_addr_len <= kMostAddress,
        "uct_iface_query");
  check(uct_iface_get_address(iface, (uct_iface_addr_t*)own) == UCS_OK, "uct_iface_get_address");
  const struct sockaddr_un here = socket_of(argv[4], rank);
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  check(bind(fd, (struct sockaddr*)&here, sizeof here) == 0, "bind");
  memcpy(list, &(uint32_t){ranks}, sizeof(uint32_t));
  exchange(fd, argv[4], own, attr.iface_addr_len, list + sizeof(uint32_t));
  const uct_ep_params_t to_group = {.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                                                  UCT_EP_PARAM_FIELD_DEV_ADDR |
                                                  UCT_EP_PARAM_FIELD_IFACE_ADDR,
                                    .iface = iface,
                                    .iface_addr = (const uct_iface_addr_t*)list};
  uct_ep_h ep;
  ucs_status_t status;
  check(uct_ep_create(&to_group, &ep) == UCS_OK, "uct_ep_create");
  while ((status = uct_ep_check(ep, 0, NULL)) == UCS_INPROGRESS) uct_iface_progress(iface);
  check(status == UCS_OK, "the registration");

  for (int source = 0; source < ranks; ++source) {
    char line[kLine];
    snprintf(line, sizeof line, "a line of rank %d", source);
    if (source == rank)
      check(uct_ep_am_short(ep, kLineId, 0, line, sizeof line) == UCS_OK, "uct_ep_am_short");
    while ((status = uct_ep_flush(ep, 0, NULL)) == UCS_INPROGRESS) uct_iface_progress(iface);
    check(status == UCS_OK, "uct_ep_flush");
    while (source != rank && lines < source + (source < rank)) uct_iface_progress(iface);
  }
  if (argc == 5) {
    char all[kMostRanks];
    exchange(fd, argv[4], "", 1,
             all); /* the group ends for all when its leader destroys its endpoint */
  } else if (rank == ranks - 1) {
    _exit(0);
  } else {
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
