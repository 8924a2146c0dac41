/* libmcast: RDMA WRITE into memory of all members of a bulk group (docs/protocol.md, "Multicast
 * WRITE").
 *
 * The fabric's write_mode and the group's parameters choose one of three ways, alike on all
 * members:
 *
 *     write_mode      parameter     a WRITE names
 *     "regions"       neither       a region's number and an offset; each member's switch replaces
 *                                   them by that member's key and address
 *     "same-key"      same_key      the same, but each region lies at address 0 under a key made of
 *                                   its number, so that switches replace nothing
 *     "per-request"   per_request   memory of each member, anew each time: mcast_write_to()
 *
 * With same_key the NIC must let programs choose keys (the emulated NIC does), only the NIC checks
 * bounds, and a region's number is unique among all groups of the process.
 *
 * WRITEs and sends may alternate, under the rule of order in <mcast/mcast.h>. A WRITE that does
 * not fit is refused as a whole at that member's switch, and fails the group on all members
 * (MCAST_ERR_FABRIC). The leader's reason and `cepheusctl groups` name the member.
 */
#ifndef MCAST_WRITE_H
#define MCAST_WRITE_H

#include <mcast/mcast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory that others may write to ---- */

/* As mcast_mem_register(), for memory that other members may write to. */
MCAST_API mcast_status_t mcast_mem_register_writable(mcast_context_h context, void* address,
                                                     size_t length, mcast_mem_h* out);
/* Others may read it, too, on connections of the application's own (<mcast/verbs.h>). */
MCAST_API mcast_status_t mcast_mem_register_shared(mcast_context_h context, void* address,
                                                   size_t length, mcast_mem_h* out);

/* ---- regions: memory under a number, one on each member ---- */

/* Registers `length` bytes at `address`, and publishes them as region `region` of this member. At
 * most 50 regions per member and group. Blocks as mcast_mem_register(). The region ends with the
 * group. Regions published before mcast_group_lead(), or before the REGISTER came to this member,
 * are in force on all members when the group becomes active. For later ones see
 * mcast_region_test(); the application tells the writer. */
MCAST_API mcast_status_t mcast_region_publish(mcast_group_h group, uint16_t region, void* address,
                                              size_t length);
/* Publishes `length` bytes from `offset` on of `mem`, which the caller registered on the group's
 * context as writable. Regions may overlap. Deregister `mem` after the group, or after the
 * revocation is in force. MCAST_ERR_INVALID: `mem` has no such part, is not writable, or belongs
 * to another context; or the group has same_key. */
MCAST_API mcast_status_t mcast_region_publish_part(mcast_group_h group, uint16_t region,
                                                   mcast_mem_h mem, size_t offset, size_t length);
/* Takes the region back: the memory is the caller's once mcast_region_test() returns MCAST_OK. A
 * WRITE under way to it, or a later one, fails the group. */
MCAST_API mcast_status_t mcast_region_revoke(mcast_group_h group, uint16_t region);
/* MCAST_OK: this member's switch knows all that was published and revoked. MCAST_INPROGRESS: not
 * yet, or the group is not being registered yet. Otherwise the group's failure. */
MCAST_API mcast_status_t mcast_region_test(mcast_group_h group);

/* Writes `length` bytes at `offset` of region `region` of all other members. done() runs when
 * every one has acknowledged them. A NIC that stores by DMA may acknowledge data shortly before it
 * is in memory; a completed receive shows that it is. Every member must have published that number,
 * with enough bytes. A WRITE longer than mcast_group_attr_t's `portion` goes in parts of that length.
 * `imm` NULL: no receive completes. Otherwise a receive of each completes, with `length` (in parts: the
 * last part's) and the word `imm` points to, its buffer untouched (one of no bytes will do). Returns
 * as mcast_send(); a next send is MCAST_ERR_AGAIN until all parts are posted. */
MCAST_API mcast_status_t mcast_write(mcast_group_h group, const void* data, size_t length,
                                     mcast_mem_h mem, uint16_t region, uint64_t offset,
                                     const uint32_t* imm, mcast_op_t* op);

/* ---- targets: memory that each WRITE names anew ---- */

/* `length` bytes of a member's memory, in network byte order: bring it to the writer as it is. */
typedef struct mcast_target {
  uint32_t ipv4;
  uint32_t rkey;
  uint64_t address;
  uint64_t length;
} mcast_target_t;

/* The target for `length` bytes at `address`, inside `mem`, which must be writable. */
MCAST_API mcast_status_t mcast_mem_target(mcast_mem_h mem, void* address, size_t length,
                                          mcast_target_t* out);
/* The part of `target` that begins at `offset`. */
MCAST_API mcast_status_t mcast_target_part(const mcast_target_t* target, uint64_t offset,
                                           uint64_t length, mcast_target_t* out);

/* Writes `length` bytes to the `count` targets, one of each other member that is in the group,
 * each at least `length` bytes; those of strangers and evicted members are skipped. done() and
 * `imm` as mcast_write(). At most 170 targets at a path MTU of 4096 and 42 at 1024; at most 64
 * such WRITEs outstanding, then MCAST_ERR_AGAIN. No WRITE may be under way when memory is
 * deregistered. */
MCAST_API mcast_status_t mcast_write_to(mcast_group_h group, const void* data, size_t length,
                                        mcast_mem_h mem, const mcast_target_t* targets,
                                        size_t count, const uint32_t* imm, mcast_op_t* op);

#ifdef __cplusplus
}
#endif
#endif
