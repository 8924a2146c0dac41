// An operation works on elements in memory. A packed block is such memory if its type has no gaps.
// Otherwise both operands are unpacked, and the result is packed again.
//
// MPI itself says whether an operation takes a type: an MPI_Allreduce without elements on a
// communicator of this process alone. Where the program passes one address twice, it has the
// elements, too: some MPIs allow that.
#include "pmpi/reduction.h"

#include <limits>
#include <mutex>
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

constexpr Count kMost = std::numeric_limits<int>::max();

// Nothing: MPI reports an error. It reports the size of an unknown type to MPI_COMM_WORLD's error
// handler, which may end the job.
std::optional<Count> size_of(Count count, Datatype type) {
  Count size = 0;
  if (count < 0 || type == kDatatypeNull || !is_ready(type) ||
      calls().Type_size_x(type, &size) != kSuccess)
    return std::nullopt;
  return size;
}

// The bytes of elements that packing can count; 0: none, or more, or the type is not ready.
std::size_t bytes_of(Count count, Datatype type) {
  const Count size = count > 0 && count <= kMost ? size_of(count, type).value_or(0) : 0;
  return size > 0 && size <= kMost / count ? static_cast<std::size_t>(count * size) : 0;
}

Elements elements(const void* memory, Count count, Datatype type) {
  return {const_cast<void*>(memory), static_cast<std::size_t>(count), type};
}

ReductionCall with_shape_alone(const coll::ReductionShape& shape) {
  ReductionCall call;
  call.shape = shape;
  return call;
}

// Of calls on the process's own communicator: MPI wants one at a time. MPI's progress in one may come
// back here.
std::recursive_mutex& own_calls() {
  static std::recursive_mutex one_at_a_time;
  return one_at_a_time;
}

bool are_operands(const ReductionArguments& of, bool has_result) {
  const bool may_be_one = has_result && of.send == of.receive && of.send != nullptr;
  char none[2] = {};
  const void* const send = may_be_one ? of.send : &none[0];
  void* const receive = may_be_one ? of.receive : &none[1];
  const int count = may_be_one ? static_cast<int>(of.receive_count) : 0;
  const std::lock_guard<std::recursive_mutex> guard(own_calls());
  return calls().Allreduce(send, receive, count, of.receive_type, of.op, own_communicator()) ==
         kSuccess;
}

bool are_gathered(const ReductionArguments& of, void* receive) {
  const std::lock_guard<std::recursive_mutex> guard(own_calls());
  return calls().Allgather(of.send, static_cast<int>(of.send_count), of.send_type, receive,
                           static_cast<int>(of.receive_count), of.receive_type,
                           own_communicator()) == kSuccess;
}

std::optional<ReductionCall> reduce_of(const ReductionArguments& of,
                                       const Communicator& communicator) {
  const bool has_result = of.collective == Collective::kAllreduce || of.root == communicator.rank;
  const bool in_place = is_in_place(of.send);
  const std::size_t bytes = bytes_of(of.receive_count, of.receive_type);
  const std::size_t element =
      of.receive_count > 0 ? bytes / static_cast<std::size_t>(of.receive_count) : 0;
  const coll::ReductionShape shape{of.collective, bytes, of.root, !is_mpis_operation(of.op),
                                   element};
  if (bytes > 0 && !may_be_ours(shape, communicator.size)) return with_shape_alone(shape);
  if (bytes == 0 || of.root < 0 || of.root >= communicator.size || of.op == kOpNull ||
      (in_place && !has_result) || (has_result && !has_memory(of.receive, of.receive_type)) ||
      (!in_place && !has_memory(of.send, of.receive_type)) || !are_operands(of, has_result))
    return std::nullopt;
  return ReductionCall{shape,
                       elements(in_place ? of.receive : of.send, of.receive_count, of.receive_type),
                       elements(of.receive, of.receive_count, of.receive_type),
                       has_result,
                       of.op,
                       Code::kDone,
                       kOperators.find(of.op, of.receive_type, element)};
}

// The sizes of a rank's contribution and of a block differ, and MPI finds no other error of the former.
bool is_of_another_size(const ReductionArguments& of, std::size_t block) {
  const std::optional<Count> size = size_of(of.send_count, of.send_type);
  if (!size) return false;
  return bytes_of(of.send_count, of.send_type) != block;
}

std::optional<ReductionCall> allgather_of(const ReductionArguments& of,
                                          const Communicator& communicator) {
  const std::size_t bytes = bytes_of(of.receive_count, of.receive_type);
  const auto ranks = static_cast<std::size_t>(communicator.size);
  const coll::ReductionShape shape{Collective::kAllgather, bytes};
  if (bytes > 0 && !may_be_ours(shape, communicator.size)) return with_shape_alone(shape);
  Count lower_bound = 0, extent = 0;
  if (bytes == 0 || !has_memory(of.receive, of.receive_type) ||
      calls().Type_get_extent_x(of.receive_type, &lower_bound, &extent) != kSuccess)
    return std::nullopt;
  const auto own = reinterpret_cast<std::intptr_t>(of.receive) +
                   static_cast<std::intptr_t>(of.receive_count * extent * communicator.rank);
  Elements contribution = elements(reinterpret_cast<void*>(own), of.receive_count, of.receive_type);
  // A wrong one takes part with memory of the right size: other ranks wait for it.
  const bool is_wrong = !is_in_place(of.send) && is_of_another_size(of, bytes);
  if (!is_in_place(of.send) && !is_wrong) {
    if (bytes_of(of.send_count, of.send_type) != bytes || !has_memory(of.send, of.send_type))
      return std::nullopt;
    const bool is_one = of.send != nullptr && of.send == contribution.memory;
    if (is_one && !are_gathered(of, contribution.memory)) return std::nullopt;
    contribution = elements(of.send, of.send_count, of.send_type);
  }
  Elements result = elements(of.receive, of.receive_count, of.receive_type);
  result.count *= ranks;
  return ReductionCall{shape, contribution, result,
                       true,  kOpNull,      is_wrong ? Code::kTruncated : Code::kDone};
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

Code Operation::apply(const void* left, void* right, std::size_t elements) {
  if (!has_type_) return Code::kNoMemory;
  if (!is_dense_) return apply_unpacked(left, right, elements);
  return to_code(calls().Reduce_local(left, right, static_cast<int>(elements), operand_.type, op_));
}

Code Operation::apply_unpacked(const void* left, void* right, std::size_t elements) {
  const Datatype type = operand_.type;
  Count lower_bound = 0, extent = 0, true_lower_bound = 0, true_extent = 0;
  if (calls().Type_get_extent_x(type, &lower_bound, &extent) != kSuccess ||
      calls().Type_get_true_extent_x(type, &true_lower_bound, &true_extent) != kSuccess)
    return Code::kFailed;
  for (coll::OperandMemory* each : {&left_, &right_}) {
    if (!each->has(elements) &&
        !each->reserve(elements, {lower_bound, extent, true_lower_bound, true_extent}))
      return Code::kNoMemory;
  }
  Buffer left_buffer({left_.origin(), elements, type});
  Buffer right_buffer({right_.origin(), elements, type});
  Buffer result({right_.origin(), elements, type});
  const std::size_t bytes = result.bytes();
  Code rc = left_buffer.unpack(0, left, bytes);
  if (rc == Code::kDone) rc = right_buffer.unpack(0, right, bytes);
  if (rc == Code::kDone)
    rc = to_code(calls().Reduce_local(left_.origin(), right_.origin(), static_cast<int>(elements),
                                      type, op_));
  return rc == Code::kDone ? result.pack(0, right, bytes) : rc;
}

}  // namespace cepheus::pmpi
