/* Puts of a UCT endpoint into the memory of all members of a group: multicast WRITE through UCX.
 *
 *     put_example TRANSPORT RANK RANKS DIRECTORY [DEVICE]
 *
 * on each of RANKS hosts; TRANSPORT is libuct_rc_mcast.so, DIRECTORY shared. Rank 0 puts a line and a picture into each page,
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

static uct_component_h component_of(const char* transport, rc_mcast_open_t* open_interface) {
  void* const library = dlopen(transport, RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  *open_interface = (rc_mcast_open_t)dlsym(library, RC_MCAST_OPEN);
  uct_component_h *components, found = NULL;
  unsigned count;
  check_ucs(uct_query_components(&components, &count), "uct_query_components");
  for (unsigned i = 0; i < count; ++i) {
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    check_ucs(uct_component_query(components[i], &attr), "uct_component_query");
    if (strcmp(attr.name, "mcast") == 0) found = components[i];
  }
  uct_release_component_list(components);
  if (found == NULL || *open_interface == NULL) exit(1);
  return found;
}

static uct_md_h open_domain(uct_component_h component) {
  uct_md_config_t* config;
  uct_md_h md;
  check_ucs(uct_md_config_read(component, NULL, NULL, &config), "uct_md_config_read");
  check_ucs(uct_config_modify(config, "DEVICES", "group"), "uct_config_modify");
  check_ucs(uct_md_open(component, "mcast", config, &md), "uct_md_open");
  uct_config_release(config);
  return md;
}

static uct_ep_h connect_to_group(uct_iface_h iface) {
  uct_iface_attr_t attr;
  check_ucs(uct_iface_query(iface, &attr), "uct_iface_query");
  char address[64];
  if (attr.iface_addr_len > sizeof address) exit(1);
  check_ucs(uct_iface_get_address(iface, (uct_iface_addr_t*)address), "uct_iface_get_address");
  const uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                                                UCT_EP_PARAM_FIELD_DEV_ADDR |
                                                UCT_EP_PARAM_FIELD_IFACE_ADDR,
                                  .iface = iface,
                                  .iface_addr = (const uct_iface_addr_t*)address};
  uct_ep_h ep;
  check_ucs(uct_ep_create(&params, &ep), "uct_ep_create");
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

static unsigned char pixel(size_t i) { return (unsigned char)(i * 7 + i / 251); }

static void put_all(uct_iface_h iface, uct_md_h md) {
  uct_ep_h ep = connect_to_group(iface);
  char line[kLine] = "put by rank 0";
  if (uct_ep_put_bcopy(ep, pack_line, line, offsetof(page_t, line), kRegion) != kLine) exit(1);
  unsigned char* const picture = malloc(kPicture);
  for (size_t i = 0; i < kPicture; ++i) picture[i] = pixel(i);
  uct_mem_h memory;
  check_ucs(uct_md_mem_reg(md, picture, kPicture, UCT_MD_MEM_ACCESS_ALL, &memory),
            "uct_md_mem_reg");
  const uct_iov_t iov = {.buffer = picture, .length = kPicture, .memh = memory, .count = 1};
  check_ucs(uct_ep_put_zcopy(ep, &iov, 1, offsetof(page_t, picture), kRegion, NULL), "put_zcopy");
  uint64_t set = 1;
  if (uct_ep_put_bcopy(ep, pack_flag, &set, offsetof(page_t, flag), kRegion) != sizeof set) exit(1);
  ucs_status_t status;
  while ((status = uct_iface_flush(iface, 0, NULL)) == UCS_INPROGRESS) uct_iface_progress(iface);
  check_ucs(status, "uct_iface_flush");
  check_ucs(uct_md_mem_dereg(md, memory), "uct_md_mem_dereg");
  free(picture);
  uct_ep_destroy(ep);
}

int main(int argc, char** argv) {
  if (argc < 5 || argc > 6) return 2;
  const int rank = atoi(argv[2]), ranks = atoi(argv[3]);
  const char* directory = argv[4];
  if (ranks < 2 || ranks > kMostRanks || rank < 0 || rank >= ranks) return 2;
  static page_t page;

  mcast_context_params_t context_params = MCAST_CONTEXT_PARAMS_INIT;
  context_params.register_timeout_ms = 60000; /* on an emulated machine, too */
  context_params.progress_timeout_ms = 60000;
  context_params.device = argv[5];
  check(mcast_context_create(&context_params, &context), "mcast_context_create");
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = MCAST_LANE_BULK;
  mcast_group_h group;
  check(mcast_group_create(context, &params, &group), "mcast_group_create");
  check(mcast_region_publish(group, kRegion, &page, sizeof page), "mcast_region_publish");

  rc_mcast_open_t open_interface;
  const uct_component_h component = component_of(argv[1], &open_interface);
  const uct_md_h md = open_domain(component);
  ucs_async_context_t* async;
  uct_worker_h worker;
  uct_iface_h iface;
  check_ucs(ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async), "ucs_async_context_create");
  check_ucs(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker), "uct_worker_create");
  check_ucs(open_interface(md, worker, group, &iface), "cepheus_uct_rc_mcast_open");

  set_up(group, rank, ranks, directory);
  size_t wrong = 0;
  if (rank == 0) {
    put_all(iface, md);
  } else {
    while (page.flag == 0) uct_iface_progress(iface);
    for (size_t i = 0; i < kPicture; ++i) wrong += page.picture[i] != pixel(i);
    wrong += strcmp(page.line, "put by rank 0") != 0;
  }
  printf("rank %d: %zu bytes wrong\n", rank, wrong);
  uct_iface_close(iface);
  finish(group, rank, ranks, directory);
  uct_worker_destroy(worker);
  ucs_async_context_destroy(async);
  uct_md_close(md);
  mcast_context_destroy(context);
  return wrong == 0 ? 0 : 1;
}
