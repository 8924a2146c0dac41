/* rc_mcast, for programs that use libmcast beside UCX. A program that knows UCT alone needs nothing
 * of this (examples/uct_broadcast.c).
 *
 * The module exports these functions:
 *
 *     module = dlopen(".../cepheus/ucx/libuct_rc_mcast.so", RTLD_NOW);   registers component "mcast"
 *     group_of = (rc_mcast_group_t)dlsym(module, RC_MCAST_GROUP);
 *
 * ucx-transport/README.md maps UCT's calls to libmcast's.
 */
#ifndef MCAST_UCT_H
#define MCAST_UCT_H

#include <mcast/mcast.h>
#include <uct/api/uct.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The address of an interface: its member's name. */
typedef struct rc_mcast_record {
  uint32_t magic; /* RC_MCAST_RECORD_MAGIC */
  mcast_member_t member;
} rc_mcast_record_t;
#define RC_MCAST_RECORD_MAGIC 0x6d636173u /* "mcas" */

/* The group that `iface` is a member of: for queries, regions and recovery. The interface leads and
 * destroys it. NULL once its endpoint was destroyed. */
#define RC_MCAST_GROUP "cepheus_uct_rc_mcast_group"
typedef mcast_group_h (*rc_mcast_group_t)(uct_iface_h iface);
MCAST_API mcast_group_h cepheus_uct_rc_mcast_group(uct_iface_h iface);

/* The context of the interfaces that `worker` opens on `md` with `config`, of
 * uct_md_iface_config_read(). The first call opens the device, and blocks meanwhile. The context
 * lasts as long as `md`. For an interface without pending requests, and without completions of
 * flush and check, the program may call mcast_progress() of its context instead of
 * uct_iface_progress(). One thread at a time, as the worker's. */
#define RC_MCAST_CONTEXT "cepheus_uct_rc_mcast_context"
typedef mcast_status_t (*rc_mcast_context_t)(uct_md_h md, uct_worker_h worker,
                                             const uct_iface_config_t* config,
                                             mcast_context_h* out);
MCAST_API mcast_status_t cepheus_uct_rc_mcast_context(uct_md_h md, uct_worker_h worker,
                                                      const uct_iface_config_t* config,
                                                      mcast_context_h* out);

/* Not 0: the module has registered with UCX. 0: it was built for another version of UCX. */
MCAST_API int cepheus_uct_rc_mcast_registered(void);

#ifdef __cplusplus
}
#endif
#endif
