// <mcast/reduce.h>: checks arguments and the group, and starts the operation. A gather is the bitwise
// OR of contributions that are zeros but for their own blocks. Operations without bytes are barriers.
// Memory of long reductions is registered between two calls of start_long(), without the state lock.
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

struct Call {
  ReductionUnits::Kind kind;
  ReductionLane::Block block;
  void* result;
  std::size_t length;
  mcast_op_t* op;
};

// Sums and products of floating-point numbers need a group that was created for them.
bool is_served(const ReductionLane& lane, const ReductionUnits::Kind& kind) {
  const auto combiner = Combiner::find(kind.operation, kind.type);
  return !combiner || !combiner->depends_on_pairs() || lane.has_floating_sums();
}

mcast_status_t check(Group& g, const Call& call) {
  const ReductionLane::Block& block = call.block;
  if (g.reduction() == nullptr) return wrong_lane(g, "a reduction");
  if (!is_served(*g.reduction(), call.kind)) {
    return invalid(
        "the group's switches don't add or multiply floating-point numbers: create it with "
        "floating_sums, or use mcast_gather()");
  }
  if (call.op == nullptr || call.op->done == nullptr) return invalid("a reduction needs op->done");
  if (call.result == nullptr && call.length > 0) return invalid("the result is null");
  if (block.data == nullptr && block.length > 0) return invalid("the contribution is null");
  if (block.offset > call.length || block.length > call.length - block.offset) {
    return invalid("the block is not inside of the result");
  }
  return MCAST_OK;
}

mcast_status_t start(Group& g, const Call& call) {
  if (const auto right = check(g, call); right != MCAST_OK) return right;
  ReductionLane& lane = *g.reduction();
  if (const auto fits = lane.check_length(call.length); !fits) return set_last_error(fits.error());
  if (const auto may = g.check_may_send(call.length, Group::Sending::kWhole); !may) {
    return set_last_error(may.error());
  }
  const auto kind = call.length > 0 ? call.kind : ReductionUnits::Kind{};
  return posted_status(g, lane.start(kind, call.block, call.result, call.length, call.op));
}

// The memory of a long reduction. In place, `result` is empty: the device does not write there.
struct Buffers {
  Buffer contribution, result;

  bool lack_regions() const { return contribution.lacks_region() || result.lacks_region(); }
  Expected<void> register_on(const Device& device) {
    for (Buffer* const each : {&contribution, &result}) {
      if (!each->lacks_region()) continue;
      if (auto done = each->register_on(device, each->length()); !done) return done;
    }
    return {};
  }
};

bool overlap(const void* a, const void* b, std::size_t length) {
  const auto first = reinterpret_cast<std::uintptr_t>(a);
  const auto second = reinterpret_cast<std::uintptr_t>(b);
  return first < second ? second - first < length : first - second < length;
}

mcast_status_t start_long(Group& g, const Call& call, Buffers& buffers) {
  if (const auto right = check(g, call); right != MCAST_OK) return right;
  if (call.block.data != call.result && overlap(call.block.data, call.result, call.length)) {
    return invalid("the result overlaps the contribution: pass the same memory, or memory apart");
  }
  if (const auto may = g.check_may_send(call.length, Group::Sending::kByUnits); !may) {
    return set_last_error(may.error());
  }
  ReductionLane& lane = *g.reduction();
  const auto started = lane.start_long(call.kind, buffers.contribution, buffers.result, call.op);
  if (started && !lane.fault().empty()) {
    g.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WORK, std::string(lane.fault()));
  }
  return posted_status(g, started);
}

mcast_status_t start(mcast_group_h group, const Call& call) {
  return with(from(group), [&](Group& g) { return start(g, call); });
}

}  // namespace

mcast_status_t mcast_gather(mcast_group_h group, const void* block, size_t block_length,
                            size_t offset, void* result, size_t length, mcast_op_t* op) {
  return start(group, {ReductionUnits::kOr, {block, block_length, offset}, result, length, op});
}

mcast_status_t mcast_reduce(mcast_group_h group, const void* contribution,
                            mcast_mem_h contribution_memory, void* result,
                            mcast_mem_h result_memory, size_t count, mcast_reduction_t operation,
                            mcast_type_t type, mcast_op_t* op) {
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
  if (count > SIZE_MAX / combiner->size())
    return invalid("count is too large: its values have more bytes than memory can have");
  const std::size_t length = count * combiner->size();
  const Call call{{static_cast<Operation>(operation), static_cast<Type>(type)},
                  {contribution, length, 0},
                  result,
                  length,
                  op};
  Buffers buffers{Buffer(contribution, length, from(contribution_memory), 0),
                  Buffer(result, contribution == result ? 0 : length, from(result_memory),
                         IBV_ACCESS_LOCAL_WRITE)};
  bool needs_regions = false;
  const auto run = [&](Group& g) {
    if (g.reduction() == nullptr || !g.reduction()->is_long(length)) return start(g, call);
    needs_regions = buffers.lack_regions();
    return start_long(g, call, buffers);
  };
  const mcast_status_t status = with(from(group), run);
  if (status != MCAST_INPROGRESS || !needs_regions) return status;
  const mcast_status_t registered =
      guarded([&] { return status_of(buffers.register_on(from(group)->context().device())); });
  return registered == MCAST_OK ? with(from(group), run) : registered;
}

mcast_status_t mcast_barrier(mcast_group_h group, mcast_op_t* op) {
  return start(group, {{}, {}, nullptr, 0, op});
}
