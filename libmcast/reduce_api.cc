// <mcast/reduce.h>: checks arguments and the group, and starts the operation. A gather is the bitwise
// OR of contributions that are zeros but for their own blocks. Operations without bytes are barriers.
#include <mcast/reduce.h>

#include "arithmetic/combine.h"
#include "libmcast/api.h"

using namespace cepheus::mcast;
using cepheus::arithmetic::Combiner;
using cepheus::arithmetic::Operation;
using cepheus::arithmetic::Type;

namespace {

// mcast_reduce() casts these codes, which packets have.
template <auto Code, auto Public>
constexpr bool kIsSame = static_cast<unsigned>(Code) == static_cast<unsigned>(Public);
static_assert(kIsSame<Operation::kBitOr, MCAST_BOR> && kIsSame<Operation::kBitAnd, MCAST_BAND> &&
              kIsSame<Operation::kBitXor, MCAST_BXOR> && kIsSame<Operation::kOr, MCAST_LOR> &&
              kIsSame<Operation::kAnd, MCAST_LAND> && kIsSame<Operation::kXor, MCAST_LXOR> &&
              kIsSame<Operation::kMin, MCAST_MIN> && kIsSame<Operation::kMax, MCAST_MAX> &&
              kIsSame<Operation::kSum, MCAST_SUM> && kIsSame<Operation::kProduct, MCAST_PROD>);
static_assert(kIsSame<Type::kUint8, MCAST_UINT8> && kIsSame<Type::kInt8, MCAST_INT8> &&
              kIsSame<Type::kUint16, MCAST_UINT16> && kIsSame<Type::kInt16, MCAST_INT16> &&
              kIsSame<Type::kUint32, MCAST_UINT32> && kIsSame<Type::kInt32, MCAST_INT32> &&
              kIsSame<Type::kUint64, MCAST_UINT64> && kIsSame<Type::kInt64, MCAST_INT64> &&
              kIsSame<Type::kFloat, MCAST_FLOAT> && kIsSame<Type::kDouble, MCAST_DOUBLE>);

mcast_status_t start(mcast_group_h group, ReductionUnits::Kind kind,
                     const ReductionLane::Block& block, void* result, size_t length,
                     mcast_op_t* op) {
  if (length == 0) kind = {};
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
    return posted_status(g, lane->start(kind, block, result, length, op));
  });
}

}  // namespace

mcast_status_t mcast_gather(mcast_group_h group, const void* block, size_t block_length,
                            size_t offset, void* result, size_t length, mcast_op_t* op) {
  return start(group, ReductionUnits::kOr, {block, block_length, offset}, result, length, op);
}

mcast_status_t mcast_reduce(mcast_group_h group, const void* contribution, void* result,
                            size_t count, mcast_reduction_t operation, mcast_type_t type,
                            mcast_op_t* op) {
  const auto code = static_cast<unsigned>(operation), type_code = static_cast<unsigned>(type);
  const bool are_codes = code <= UINT8_MAX && type_code <= UINT8_MAX;
  const auto combiner = are_codes ? Combiner::find(static_cast<std::uint8_t>(code),
                                                   static_cast<std::uint8_t>(type_code))
                                  : std::nullopt;
  if (!combiner) {
    return invalid(
        "mcast_reduce() has no such operation on this type: pass an mcast_reduction_t and an "
        "mcast_type_t, and bitwise and logical operations with integers only");
  }
  if (combiner->depends_on_pairs())
    return invalid("the switches don't add or multiply floating-point numbers: use mcast_gather()");
  if (count > SIZE_MAX / combiner->size())
    return invalid("count is too large: a result has max_message bytes at most");
  const std::size_t length = count * combiner->size();
  return start(group, {static_cast<Operation>(operation), static_cast<Type>(type)},
               {contribution, length, 0}, result, length, op);
}

mcast_status_t mcast_barrier(mcast_group_h group, mcast_op_t* op) {
  return start(group, {}, {}, nullptr, 0, op);
}
