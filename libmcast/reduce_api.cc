// <mcast/reduce.h>: checks arguments and the group, and starts the operation. A gather is the bitwise
// OR of contributions that are zeros but for their own blocks, and a barrier one without bytes.
#include <mcast/reduce.h>

#include "libmcast/api.h"

using namespace cepheus::mcast;

namespace {

mcast_status_t start(mcast_group_h group, const ReductionLane::Block& block, void* result,
                     size_t length, mcast_op_t* op) {
  return with(from(group), [&](Group& g) {
    ReductionLane* const lane = g.reduction();
    if (lane == nullptr) return wrong_lane(g, "a reduction");
    if (op == nullptr || op->done == nullptr) return invalid("a reduction needs op->done");
    if (result == nullptr && length > 0) return invalid("the result is null");
    if (block.data == nullptr && block.length > 0) return invalid("the contribution is null");
    if (block.offset > length || block.length > length - block.offset) {
      return invalid("the block is not inside of the result");
    }
    if (const auto fits = lane->check_length(length); !fits) return set_last_error(fits.error());
    if (const auto may = g.check_may_send(length, Group::Sending::kWhole); !may) {
      return set_last_error(may.error());
    }
    return posted_status(g, lane->start(block, result, length, op));
  });
}

}  // namespace

mcast_status_t mcast_gather(mcast_group_h group, const void* block, size_t block_length,
                            size_t offset, void* result, size_t length, mcast_op_t* op) {
  return start(group, {block, block_length, offset}, result, length, op);
}

mcast_status_t mcast_reduce(mcast_group_h group, const void* contribution, void* result,
                            size_t length, mcast_op_t* op) {
  return start(group, {contribution, length, 0}, result, length, op);
}

mcast_status_t mcast_barrier(mcast_group_h group, mcast_op_t* op) {
  return start(group, {}, nullptr, 0, op);
}
