/* libmcast: reductions. Every member contributes, and the switches bring the result to all members
 * (docs/protocol.md, "Reductions").
 *
 * A group of its own serves them: mcast_group_params_t::lane is MCAST_LANE_REDUCTION, and
 * reduction_window is alike on all members. Such a group fails on all members if one is lost, even
 * without mcast_group_params_t::lost_member. A switch that can't serve it refuses its registration
 * (MCAST_ERR_REJECTED, with the reason).
 *
 * All members start the same operations, with the same types and lengths, in the same order. If
 * their packets differ, the group fails on all members (MCAST_ERR_FABRIC); the leader's reason names
 * two members, and the length, operation and type of each. Operations that are cut into the same
 * packets are not told apart. One without bytes is a barrier. Several operations may be under way.
 * They end in the order of their start.
 *
 * An operation is short if its values have at most max_message bytes (<mcast/query.h>), else long.
 * That is MCAST_REDUCTION_PACKETS times path_mtu, or less if a queue on the way takes fewer packets.
 * All gathers are short.
 *
 *                 contribution                         result
 *     short       copied before the call returns,      written before done() runs; may be the
 *                 and free then                        same memory, or overlap it
 *     long        read until done() has run            written at any time until done() has run;
 *                                                      the same memory, or apart
 *
 * So a program leaves a long operation's memory alone until done(), also after an error: the device may
 * be at work on it. In place, which means that both are the same memory, results replace
 * contributions bit by bit. The device reads and writes a long operation's memory directly, except
 * that results in place are copied, and the first and last reduction_window packets' results.
 *
 * done() runs once:
 *
 *     MCAST_OK            the whole result is there, and all members have started the operation
 *     others              the group has failed, and the result's bytes are undefined; the operation
 *                         may have ended with MCAST_OK on other members
 *
 * A late member delays the others' results, for hours if need be.
 *
 * An operation can't be cancelled alone, because others may have its contribution:
 * mcast_group_destroy() and mcast_group_stop() end all of them.
 *
 * The calls return MCAST_INPROGRESS, or an error, after which done() does not run:
 *
 *     MCAST_ERR_AGAIN     short: its packets don't fit into reduction_window, or into a queue on the
 *                         way, beside this member's packets that are under way, or that its switch
 *                         has not acknowledged. So it waits for a long operation before it. Long:
 *                         reduction_window operations are under way. Repeat after mcast_progress()
 *     MCAST_ERR_INVALID   a wrong argument, a group that is not active yet, or a gather's result
 *                         longer than max_message
 *     MCAST_ERR_NO_MEMORY the memory of a long operation can't be registered
 *     others              the group has failed
 */
#ifndef MCAST_REDUCE_H
#define MCAST_REDUCE_H

#include <mcast/mcast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Packets of a short operation's result at most. */
#define MCAST_REDUCTION_PACKETS 8

/* Brings the members' blocks together: `block` has `block_length` bytes, which are at `offset` of
 * all members' results. `result` has `length` bytes. Where blocks overlap, the result is their
 * bitwise OR; bytes of no block are 0. Blocks may differ in length, and a member may have none. */
MCAST_API mcast_status_t mcast_gather(mcast_group_h group, const void* block, size_t block_length,
                                      size_t offset, void* result, size_t length, mcast_op_t* op);

/* MPI's operations. Sums and products of integers wrap. Minimum and maximum of floating-point numbers
 * are those of IEEE 754-2019: with a NaN the result is a NaN, and -0 is less than +0. Of a logical
 * operation every value but 0 is true, and the result is 0 or 1. */
typedef enum mcast_reduction {
  MCAST_BOR = 1, /* bitwise and logical operations: of integers alone */
  MCAST_BAND = 2,
  MCAST_BXOR = 3,
  MCAST_LOR = 4,
  MCAST_LAND = 5,
  MCAST_LXOR = 6,
  MCAST_MIN = 7,
  MCAST_MAX = 8,
  MCAST_SUM = 9, /* sums and products of floating-point numbers: if the group has floating_sums */
  MCAST_PROD = 10,
} mcast_reduction_t;
typedef enum mcast_type {
  MCAST_UINT8 = 0,
  MCAST_INT8 = 1,
  MCAST_UINT16 = 2,
  MCAST_INT16 = 3,
  MCAST_UINT32 = 4,
  MCAST_INT32 = 5,
  MCAST_UINT64 = 6,
  MCAST_INT64 = 7,
  MCAST_FLOAT = 8,
  MCAST_DOUBLE = 9,
} mcast_type_t;
/* Reduces all members' contributions, of `count` values each, value by value. There may be any number
 * of values. They are in little-endian order on every machine, at any alignment.
 *
 * The bits of a result, which all members get alike:
 *
 *     integers, MIN, MAX          do not depend on the order of members
 *     SUM, PROD of FLOAT, DOUBLE  depend on the pairs in which the switches combine them:
 *       is_flat, is_ascending     pairs by the members' indices, whatever the network is
 *       is_flat alone             pairs by the members' addresses
 *       others                    pairs of the switches' tree: the same in all calls of one group
 *
 * mcast_group_query() shows is_flat and is_ascending of an active group. Pairs of 0, 1, 2, 3, 4 are
 * ((0 1) (2 3)) 4. Results are rounded to the nearest, subnormal numbers stay as they are, and a NaN
 * is 0xFFC00000 or 0xFFF8000000000000, in whatever mode the program's processor is. Without
 * mcast_group_params_t::floating_sums, gather floating-point numbers, and add them yourself.
 *
 * `contribution_memory` and `result_memory` are registered memory of the group's context that covers
 * all values (mcast_mem_register), or null. Then a long operation registers them, which may take
 * 100 ms a gigabyte, and deregisters them before done(). Short ones don't use registered memory. In
 * place, `result_memory` is not used. */
MCAST_API mcast_status_t mcast_reduce(mcast_group_h group, const void* contribution,
                                      mcast_mem_h contribution_memory, void* result,
                                      mcast_mem_h result_memory, size_t count,
                                      mcast_reduction_t operation, mcast_type_t type,
                                      mcast_op_t* op);
/* Without bytes: done() runs once all members have called this. */
MCAST_API mcast_status_t mcast_barrier(mcast_group_h group, mcast_op_t* op);

#ifdef __cplusplus
}
#endif
#endif
