/* rc_mcast: a group of libmcast as an interface of UCT, UCX's transport layer.
 *
 * One interface is one member of one group. UCT opens interfaces by device names and configuration
 * strings, and neither can carry a group's handle. A program therefore opens one by this module's
 * own call, and uses UCT's for all else:
 *
 *     module = dlopen(".../cepheus/ucx/libuct_rc_mcast.so", RTLD_NOW);   registers component "mcast"
 *     uct_md_open() on that component, with DEVICES set to any name
 *     open = (rc_mcast_open_t)dlsym(module, RC_MCAST_OPEN);
 *     open(md, worker, group, &iface);
 *
 * UCT's calls to libmcast's, after that: active messages (short, bcopy) to an eager lane; tag
 * eager zcopy and tag receives to a bulk lane, the tag's low 32 bits as immediate data; puts to
 * multicast WRITE, with a region's number as `rkey` and an offset as `remote_addr`. A flush ends
 * when every member has acknowledged.
 */
#ifndef MCAST_UCT_H
#define MCAST_UCT_H

#include <mcast/mcast.h>
#include <uct/api/uct.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RC_MCAST_OPEN "cepheus_uct_rc_mcast_open"
typedef ucs_status_t (*rc_mcast_open_t)(uct_md_h md, uct_worker_h worker, mcast_group_h group,
                                        uct_iface_h* out);

/* Opens an interface that is this process's member of `group`, of an eager lane before the group
 * is registered. Close it with uct_iface_close(), before the group is destroyed; one of an eager lane
 * not from a callback, since closing waits for mcast_progress() to end. Its progress is
 * mcast_progress() of the group's context, which the program may call instead. One thread at a
 * time, as the worker's. UCS_ERR_INVALID_PARAM: no group. */
MCAST_API ucs_status_t cepheus_uct_rc_mcast_open(uct_md_h md, uct_worker_h worker,
                                                 mcast_group_h group, uct_iface_h* out);

/* Not 0: the module has registered with UCX. 0: it was built for another version of UCX. */
MCAST_API int cepheus_uct_rc_mcast_registered(void);

#ifdef __cplusplus
}
#endif
#endif
