/* libmcast: progress for programs that sleep between looks. */
#ifndef MCAST_WAIT_H
#define MCAST_WAIT_H

#include <mcast/mcast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* mcast_progress() that also does control work, whichever call in a row it is. */
MCAST_API unsigned mcast_progress_all(mcast_context_h context);

/* Makes `fd` readable at the next completion of the context, until its next mcast_progress().
 * Earlier completions do not count, hence this order:
 *
 *     mcast_context_arm(context, &fd), mcast_progress(context), poll() `fd` if nothing was done
 *
 * Control work does not make it readable: sleep for at most 10 ms while operations are outstanding
 * or a group is being set up. The next mcast_progress() does control work. `fd` is the library's
 * and the same one each time: neither read nor close it. MCAST_ERR_AGAIN: another thread makes
 * progress, or the PSNs of a group are being synchronised; MCAST_ERR_NO_DEVICE: the device has no completion channel, keep polling. */
MCAST_API mcast_status_t mcast_context_arm(mcast_context_h context, int* fd);

#ifdef __cplusplus
}
#endif
#endif
