/* Puts of a UCT endpoint into the memory of all members of a group: multicast WRITE through UCX.
 *
 *     put_example TRANSPORT RANK RANKS DIRECTORY [DEVICE]
 *
 * on each of RANKS hosts; TRANSPORT is libuct_rc_mcast.so, DIRECTORY shared. UCX makes the group,
 * and libmcast publishes the pages as its regions. Rank 0 puts a line and a picture into each page,
 * one packed and one zero-copy. Then it puts a flag, which arrives last: puts keep their order.
 */
#include <dlfcn.h>
#include <mcast/uct.h>
#include <mcast/write.h>
#include <string.h>
#include <uct/api/uct.h>
/* uct.h first: the next one insists on it. */
#include <ucs/async/async_fwd.h>

#include "examples/meeting.h"

enum { kRegion = 7, kLine = 64, kPicture = 1 << 20 };

typedef struct {
  char line[kLine];
  unsigned char picture[kPicture];
  volatile uint64_t flag;
} page_t;

static void check_ucs(ucs_status_t status, const char* what) {
  if (status >= 0) return;
  fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
  exit(1);
}

static uct_component_h component_of(const char* transport, rc_mcast_group_t* group_of) {
  void* const library = dlopen(transport, RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  *group_of = (rc_mcast_group_t)dlsym(library, RC_MCAST_GROUP);
  uct_component_h *components, found = NULL;
  unsigned count;
  check_ucs(uct_query_components(&components, &count), "uct_query_components");
  for (unsigned i = 0; i < count; ++i) {
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    check_ucs(uct_component_query(components[i], &attr), "uct_component_query");
    if (strcmp(attr.name, "mcast") == 0) found = components[i];
  }
  uct_release_component_list(components);
  if (found == NULL || *group_of == NULL) exit(1);
  return found;
}

static uct_md_h open_domain(uct_component_h component) {
  uct_md_config_t* config;
  uct_md_h md;
  check_ucs(uct_md_config_read(component, NULL, NULL, &config), "uct_md_config_read");
  check_ucs(uct_md_open(component, "mcast", config, &md), "uct_md_open");
  uct_config_release(config);
  return md;
}

static uct_iface_h open_member(uct_md_h md, uct_worker_h worker) {
  uct_iface_config_t* config;
  check_ucs(uct_md_iface_config_read(md, "rc_mcast", NULL, NULL, &config), "iface_config_read");
  const uct_iface_params_t params = {
      .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE,
      .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
      .mode.device = {.tl_name = "rc_mcast", .dev_name = "any"}};
  uct_iface_h iface;
  check_ucs(uct_iface_open(md, worker, &params, config, &iface), "uct_iface_open");
  uct_config_release(config);
  return iface;
}

/* Rank 0 leads, and the others know themselves alone. */
static uct_ep_h join_group(uct_iface_h iface, int rank, int ranks, const char* directory) {
  struct {
    uint32_t count;
    rc_mcast_record_t members[kMostRanks];
  } list = {1, {{0}}};
  check_ucs(uct_iface_get_address(iface, (uct_iface_addr_t*)&list.members[0]),
            "uct_iface_get_address");
  leave_bytes(directory, "name", rank, &list.members[0], sizeof list.members[0]);
  if (rank == 0) {
    list.count = (uint32_t)ranks;
    for (int i = 1; i < ranks; ++i)
      find_bytes(directory, "name", i, &list.members[i], sizeof list.members[i]);
  }
  const uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                                                UCT_EP_PARAM_FIELD_DEV_ADDR |
                                                UCT_EP_PARAM_FIELD_IFACE_ADDR,
                                  .iface = iface,
                                  .iface_addr = (const uct_iface_addr_t*)&list};
  uct_ep_h ep;
  check_ucs(uct_ep_create(&params, &ep), "uct_ep_create");
  ucs_status_t status;
  while ((status = uct_ep_check(ep, 0, NULL)) == UCS_INPROGRESS) uct_iface_progress(iface);
  check_ucs(status, "uct_ep_check");
  return ep;
}

static size_t pack_line(void* dest, void* arg) {
  memcpy(dest, arg, kLine);
  return kLine;
}

static size_t pack_flag(void* dest, void* arg) {
  memcpy(dest, arg, sizeof(uint64_t));
  return sizeof(uint64_t);
}

/* UCS_ERR_NO_RESOURCE: put again after progress. */
static void put_packed(uct_iface_h iface, uct_ep_h ep, uct_pack_callback_t pack, void* from,
                       size_t length, size_t to) {
  ssize_t packed;
  while ((packed = uct_ep_put_bcopy(ep, pack, from, to, kRegion)) == UCS_ERR_NO_RESOURCE) {
    uct_iface_progress(iface);
  }
  if (packed != (ssize_t)length) exit(1);
}

static unsigned char pixel(size_t i) { return (unsigned char)(i * 7 + i / 251); }

static void put_all(uct_iface_h iface, uct_ep_h ep, uct_md_h md) {
  char line[kLine] = "put by rank 0";
  put_packed(iface, ep, pack_line, line, kLine, offsetof(page_t, line));
  unsigned char* const picture = malloc(kPicture);
  for (size_t i = 0; i < kPicture; ++i) picture[i] = pixel(i);
  uct_mem_h memory;
  check_ucs(uct_md_mem_reg(md, picture, kPicture, UCT_MD_MEM_ACCESS_ALL, &memory),
            "uct_md_mem_reg");
  const uct_iov_t iov = {.buffer = picture, .length = kPicture, .memh = memory, .count = 1};
  check_ucs(uct_ep_put_zcopy(ep, &iov, 1, offsetof(page_t, picture), kRegion, NULL), "put_zcopy");
  uint64_t set = 1;
  put_packed(iface, ep, pack_flag, &set, sizeof set, offsetof(page_t, flag));
  ucs_status_t status;
  while ((status = uct_iface_flush(iface, 0, NULL)) == UCS_INPROGRESS) uct_iface_progress(iface);
  check_ucs(status, "uct_iface_flush");
  check_ucs(uct_md_mem_dereg(md, memory), "uct_md_mem_dereg");
  free(picture);
}

int main(int argc, char** argv) {
  if (argc < 5 || argc > 6) return 2;
  const int rank = atoi(argv[2]), ranks = atoi(argv[3]);
  const char* directory = argv[4];
  if (ranks < 2 || ranks > kMostRanks || rank < 0 || rank >= ranks) return 2;
  static page_t page;

  setenv("UCX_MCAST_DEVICES", argc == 6 ? argv[5] : "any", 1);
  setenv("UCX_RC_MCAST_LANE", "bulk", 1);
  setenv("UCX_RC_MCAST_REGISTER_TIMEOUT", "60s", 1); /* on an emulated machine, too */
  setenv("UCX_RC_MCAST_PROGRESS_TIMEOUT", "60s", 1);
  rc_mcast_group_t group_of;
  const uct_component_h component = component_of(argv[1], &group_of);
  const uct_md_h md = open_domain(component);
  ucs_async_context_t* async;
  uct_worker_h worker;
  check_ucs(ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async), "ucs_async_context_create");
  check_ucs(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker), "uct_worker_create");
  const uct_iface_h iface = open_member(md, worker);
  const mcast_group_h group = group_of(iface);
  context = mcast_group_context(group);
  check(mcast_region_publish(group, kRegion, &page, sizeof page), "mcast_region_publish");

  const uct_ep_h ep = join_group(iface, rank, ranks, directory);
  size_t wrong = 0;
  if (rank == 0) {
    put_all(iface, ep, md);
  } else {
    while (page.flag == 0) uct_iface_progress(iface);
    for (size_t i = 0; i < kPicture; ++i) wrong += page.picture[i] != pixel(i);
    wrong += strcmp(page.line, "put by rank 0") != 0;
  }
  printf("rank %d: %zu bytes wrong\n", rank, wrong);
  /* The group ends for all when its leader destroys its endpoint. */
  leave_bytes(directory, "done", rank, &rank, sizeof rank);
  for (int i = 0, other; i < ranks; ++i) find_bytes(directory, "done", i, &other, sizeof other);
  uct_ep_destroy(ep);
  uct_iface_close(iface);
  uct_worker_destroy(worker);
  ucs_async_context_destroy(async);
  uct_md_close(md);
  return wrong == 0 ? 0 : 1;
}
