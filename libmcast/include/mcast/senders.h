/* libmcast: sender groups, bulk groups with one fixed sender (MC-RDMA; docs/protocol.md, "Sender
 * groups").
 *
 * mcast_group_params_t::sender_group on all members makes one, without same_key and per_request.
 * The member that leads is the sender; others' sends are refused (MCAST_ERR_INVALID). At most 16
 * receivers. The fabric's sender_groups must be "everywhere" or "racks". Such a group needs no
 * group address, only switches where its tree branches keep state of it, and several paths share
 * its load.
 *
 * Receivers publish regions before they are named, and the application brings those to the sender
 * with the names. The regions last as long as the group.
 */
#ifndef MCAST_SENDERS_H
#define MCAST_SENDERS_H

#include <mcast/write.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The leader's mcast_group_params_t::virtual_qpn; other members may leave it 0. No other sender group
 * of the host may have that number, nor have had it in the last 10 s. It comes from the host's
 * cepheus-cmd (<cepheus/connections.h>), which has the numbers up to 0xFFFFFE. Or the program chooses
 * it from these, from a random place on if other programs of the host choose, too. If another group
 * has the number, the registration ends in MCAST_ERR_ID_IN_USE. */
#define MCAST_CHOSEN_QPN_FIRST 0xC00000u
#define MCAST_CHOSEN_QPN_LAST 0xDFFFFFu

/* A published region of one member, in network byte order: send it to the sender as it is. */
typedef struct mcast_region {
  mcast_target_t target;
  uint16_t number;
  uint16_t reserved[3]; /* 0 */
} mcast_region_t;

/* The regions that this member has published. `*count` is the capacity of `out`, then their number.
 * MCAST_ERR_INVALID: too small a capacity, or not a sender group. */
MCAST_API mcast_status_t mcast_group_regions(mcast_group_h group, mcast_region_t* out,
                                             size_t* count);
/* mcast_group_lead() with the members' `regions`, at most 40 together, in any order. The caller's
 * own are ignored, because no member writes to them. */
MCAST_API mcast_status_t mcast_group_lead_regions(mcast_group_h group,
                                                  const mcast_member_t* members, size_t count,
                                                  const mcast_region_t* regions,
                                                  size_t region_count);

#ifdef __cplusplus
}
#endif
#endif
