// An operation works on elements in memory. A packed block is such memory if its type has no gaps.
// Otherwise both operands are unpacked, and the result is packed again.
//
// MPI itself says whether an operation takes a type: an MPI_Allreduce without elements on a
// communicator of this process alone. Where the program passes one address twice, it has the
// elements, too: some MPIs allow that.
#include "pmpi/reduction.h"

#include <limits>
#include <utility>

#include "pmpi/arguments.h"
#include "pmpi/calls.h"
#include "pmpi/codes.h"
#include "pmpi/operations.h"

namespace cepheus::pmpi {

using coll::Code;
using coll::Collective;

namespace {

bool is_in_place(const void* memory) { return reinterpret_cast<std::intptr_t>(memory) == kInPlace; }

// The bytes of elements that packing can count; 0: none, or more, or the type is not ready. MPI
// reports the size of an unknown type to MPI_COMM_WORLD's error handler, which may end the job.
std::size_t bytes_of(Count count, Datatype type) {
  constexpr Count kMost = std::numeric_limits<int>::max();
  Count size = 0;
  if (count <= 0 || count > kMost || type == kDatatypeNull || !is_ready(type) ||
      calls().Type_size_x(type, &size) != kSuccess || size <= 0 || size > kMost / count)
    return 0;
  return static_cast<std::size_t>(count * size);
}

Elements elements(const void* memory, Count count, Datatype type) {
  return {const_cast<void*>(memory), static_cast<std::size_t>(count), type};
}

bool are_operands(const ReductionArguments& of, bool has_result) {
  const bool may_be_one = has_result && of.send == of.receive && of.send != nullptr;
  char none[2] = {};
  const void* const send = may_be_one ? of.send : &none[0];
  void* const receive = may_be_one ? of.receive : &none[1];
  const int count = may_be_one ? static_cast<int>(of.receive_count) : 0;
  return calls().Allreduce(send, receive, count, of.receive_type, of.op, own_communicator()) ==
         kSuccess;
}

std::optional<ReductionCall> reduce_of(const ReductionArguments& of,
                                       const Communicator& communicator) {
  const bool has_result = of.collective == Collective::kAllreduce || of.root == communicator.rank;
  const bool in_place = is_in_place(of.send);
  const std::size_t bytes = bytes_of(of.receive_count, of.receive_type);
  if (bytes == 0 || of.root < 0 || of.root >= communicator.size || of.op == kOpNull ||
      (in_place && !has_result) || (has_result && !has_memory(of.receive, of.receive_type)) ||
      (!in_place && !has_memory(of.send, of.receive_type)) || !are_operands(of, has_result))
    return std::nullopt;
  return ReductionCall{{of.collective, bytes, of.root},
                       elements(in_place ? of.receive : of.send, of.receive_count, of.receive_type),
                       elements(of.receive, of.receive_count, of.receive_type),
                       has_result,
                       of.op};
}

std::optional<ReductionCall> allgather_of(const ReductionArguments& of,
                                          const Communicator& communicator) {
  const std::size_t bytes = bytes_of(of.receive_count, of.receive_type);
  const auto ranks = static_cast<std::size_t>(communicator.size);
  Count lower_bound = 0, extent = 0;
  if (bytes == 0 || bytes > std::numeric_limits<int>::max() / ranks ||
      !has_memory(of.receive, of.receive_type) ||
      calls().Type_get_extent_x(of.receive_type, &lower_bound, &extent) != kSuccess)
    return std::nullopt;
  const auto own = reinterpret_cast<std::intptr_t>(of.receive) +
                   static_cast<std::intptr_t>(of.receive_count * extent * communicator.rank);
  Elements contribution = elements(reinterpret_cast<void*>(own), of.receive_count, of.receive_type);
  if (!is_in_place(of.send)) {
    if (bytes_of(of.send_count, of.send_type) != bytes || !has_memory(of.send, of.send_type))
      return std::nullopt;
    const bool is_one = of.send != nullptr && of.send == contribution.memory;
    if (is_one && calls().Allgather(of.send, static_cast<int>(of.send_count), of.send_type,
                                    contribution.memory, static_cast<int>(of.receive_count),
                                    of.receive_type, own_communicator()) != kSuccess)
      return std::nullopt;
    contribution = elements(of.send, of.send_count, of.send_type);
  }
  Elements result = elements(of.receive, of.receive_count, of.receive_type);
  result.count *= ranks;
  return ReductionCall{{Collective::kAllgather, bytes}, contribution, result, true, kOpNull};
}

}  // namespace

std::optional<ReductionCall> call_of(const ReductionArguments& arguments,
                                     const Communicator& communicator) {
  switch (arguments.collective) {
    case Collective::kBarrier:
      return ReductionCall{};
    case Collective::kAllgather:
      return allgather_of(arguments, communicator);
    default:
      return reduce_of(arguments, communicator);
  }
}

Operation::Operation(Op op, const Elements& operand)
    : op_(op), operand_(operand), is_dense_(is_dense(operand.type)) {}

Operation::~Operation() {
  if (holds_) release_operation(op_);
  if (row_ != kDatatypeNull) (void)calls().Type_free(&row_);
}

void Operation::hold() {
  hold_operation(op_);
  holds_ = true;
  if (is_predefined(operand_.type)) return;
  row_ = make_row(operand_, 0);
  has_type_ = row_ != kDatatypeNull;
}

Code Operation::apply(const void* left, void* right) {
  if (!has_type_) return Code::kNoMemory;
  if (!is_dense_) return apply_unpacked(left, right);
  return to_code(
      calls().Reduce_local(left, right, static_cast<int>(operand_.count), operand_.type, op_));
}

Code Operation::apply_unpacked(const void* left, void* right) {
  const Datatype type = operand_.type;
  Count lower_bound = 0, extent = 0, true_lower_bound = 0, true_extent = 0;
  if (calls().Type_get_extent_x(type, &lower_bound, &extent) != kSuccess ||
      calls().Type_get_true_extent_x(type, &true_lower_bound, &true_extent) != kSuccess)
    return Code::kFailed;
  for (coll::OperandMemory* each : {&left_, &right_}) {
    if (!each->is_reserved() &&
        !each->reserve(operand_.count, {lower_bound, extent, true_lower_bound, true_extent}))
      return Code::kNoMemory;
  }
  Buffer left_buffer({left_.origin(), operand_.count, type});
  Buffer right_buffer({right_.origin(), operand_.count, type});
  Buffer result({right_.origin(), operand_.count, type});
  const std::size_t bytes = result.bytes();
  Code rc = left_buffer.unpack(0, left, bytes);
  if (rc == Code::kDone) rc = right_buffer.unpack(0, right, bytes);
  if (rc == Code::kDone)
    rc = to_code(calls().Reduce_local(left_.origin(), right_.origin(),
                                      static_cast<int>(operand_.count), type, op_));
  return rc == Code::kDone ? result.pack(0, right, bytes) : rc;
}

}  // namespace cepheus::pmpi
