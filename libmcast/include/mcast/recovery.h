/* libmcast: for programs that have another way to send, and take it when a group fails. */
#ifndef MCAST_RECOVERY_H
#define MCAST_RECOVERY_H

#include <mcast/mcast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fails the group as a failure of this member would. Its queue pair stops, and bulk operations end
 * with MCAST_ERR_FABRIC. Messages that had arrived are still handed over. The other members' groups
 * fail as soon as they learn of it. From then on mcast_group_test() has `reason` as its text here.
 * A group that has failed already stays as it is. */
MCAST_API mcast_status_t mcast_group_stop(mcast_group_h group, const char* reason);

/* 0: this member's sends may wait without limit for members that have not posted a receive. The
 * watchdog and the search for lagging members do not count that time. Not 0, as after creation:
 * both count, from now on. */
MCAST_API mcast_status_t mcast_group_set_watchdog(mcast_group_h group, int on);

/* EAGER: the sends of a failed group that perhaps not every member has received, oldest first.
 * `index` is 0, 1, ... until MCAST_ERR_INVALID. `data` has `length` bytes and stays valid until the
 * group is destroyed. */
MCAST_API mcast_status_t mcast_group_unacknowledged(mcast_group_h group, unsigned index,
                                                    const void** data, size_t* length,
                                                    uint32_t* imm);

#ifdef __cplusplus
}
#endif
#endif
