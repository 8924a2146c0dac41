// An operation works on elements in memory. A packed block is such memory if its type has no gaps,
// also none at its ends.
// Otherwise both operands are unpacked, and the result is packed again.
#include "ompi-coll/reduction.h"

#include <algorithm>
#include <array>

#include "ompi-coll/codes.h"
#include "ompi-coll/operators.h"

namespace cepheus::ompi {

using coll::Code;
using coll::Collective;

namespace {

void* contribution_of(const void* send, void* receive) {
  return send == MPI_IN_PLACE ? receive : const_cast<void*>(send);
}

Elements elements(void* memory, int count, ompi_datatype_t* type) {
  return {memory, static_cast<std::size_t>(count), type};
}

// Not the program's.
bool is_mpis(const ompi_op_t* op) {
  const std::array<const ompi_op_t*, 14> all{
      MPI_SUM,  MPI_MAX, MPI_MIN,  MPI_PROD,   MPI_LAND,   MPI_LOR,     MPI_LXOR,
      MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP};
  return std::find(all.begin(), all.end(), op) != all.end();
}

coll::Bounds bounds_of(const ompi_datatype_t* type) {
  coll::Bounds bounds;
  (void)ompi_datatype_get_extent(type, &bounds.lower, &bounds.extent);
  (void)ompi_datatype_get_true_extent(type, &bounds.true_lower, &bounds.true_extent);
  return bounds;
}

}  // namespace

ReductionCall allreduce_call(const void* send, void* receive, int count, ompi_datatype_t* type,
                             ompi_op_t* op, ompi_communicator_t* comm) {
  const Elements result = elements(receive, count, type);
  const std::size_t element = bytes_of(1, type);
  return {{Collective::kAllreduce, bytes_of(result.count, type), 0, !is_mpis(op), element},
          elements(contribution_of(send, receive), count, type),
          result,
          true,
          {op, comm},
          Code::kDone,
          operators().find(op, type, element)};
}

ReductionCall reduce_call(const void* send, void* receive, int count, ompi_datatype_t* type,
                          ompi_op_t* op, int root, ompi_communicator_t* comm) {
  ReductionCall call = allreduce_call(send, receive, count, type, op, comm);
  call.shape.collective = Collective::kReduce;
  call.shape.root = root;
  call.has_result = ompi_comm_rank(comm) == root;
  return call;
}

ReductionCall allgather_call(const void* send, int send_count, ompi_datatype_t* send_type,
                             void* receive, int receive_count, ompi_datatype_t* receive_type,
                             ompi_communicator_t* comm) {
  Elements contribution = elements(const_cast<void*>(send), send_count, send_type);
  Elements result = elements(receive, receive_count, receive_type);
  const std::size_t block = bytes_of(result.count, receive_type);
  const bool in_place = send == MPI_IN_PLACE;
  const bool is_wrong = !in_place && bytes_of(contribution.count, send_type) != block;
  if (in_place || is_wrong) {  // a wrong one takes part with memory of the right size
    ptrdiff_t lower_bound = 0, extent = 0;
    (void)ompi_datatype_get_extent(receive_type, &lower_bound, &extent);
    contribution = result;
    contribution.memory =
        static_cast<std::byte*>(receive) + extent * receive_count * ompi_comm_rank(comm);
  }
  result.count *= static_cast<std::size_t>(ompi_comm_size(comm));
  return {{Collective::kAllgather, block},          contribution, result, true, {},
          is_wrong ? Code::kTruncated : Code::kDone};
}

bool may_be_open_mpis_own(const ReductionCall& call) {
  return call.shape.collective == Collective::kAllreduce && call.result.count == 1 &&
         call.result.type == &ompi_mpi_int.dt && (call.op.op == MPI_MAX || call.op.op == MPI_MIN);
}

Operation::Operation(const OperationOn& operation, const Elements& operand)
    : operation_(operation), type_(operand.type) {
  // One element counts as contiguous memory in Open MPI even if its extent is not its size.
  const coll::Bounds bounds = bounds_of(type_);
  is_dense_ =
      bounds.lower == 0 && bounds.true_lower == 0 &&
      bounds.extent == static_cast<ptrdiff_t>(bytes_of(1, type_)) &&
      ompi_datatype_is_contiguous_memory_layout(type_, static_cast<int32_t>(operand.count)) != 0;
}

Code Operation::apply(const void* left, void* right, std::size_t elements) {
  return is_dense_ ? reduce(left, right, elements) : apply_unpacked(left, right, elements);
}

Code Operation::reduce(const void* left, void* right, std::size_t elements) const {
  const mca_coll_base_comm_coll_t& functions = *operation_.comm->c_coll;
  return to_code(functions.coll_reduce_local(left, right, static_cast<int>(elements), type_,
                                             operation_.op, functions.coll_reduce_local_module));
}

Code Operation::apply_unpacked(const void* left, void* right, std::size_t elements) {
  for (coll::OperandMemory* each : {&left_, &right_}) {
    if (!each->has(elements) && !each->reserve(elements, bounds_of(type_))) return Code::kNoMemory;
  }
  Buffer left_buffer({left_.origin(), elements, type_}),
      right_buffer({right_.origin(), elements, type_});
  const std::size_t bytes = left_buffer.bytes();
  Code rc = left_buffer.unpack(0, left, bytes);
  if (rc == Code::kDone) rc = right_buffer.unpack(0, right, bytes);
  if (rc == Code::kDone) rc = reduce(left_.origin(), right_.origin(), elements);
  if (rc != Code::kDone) return rc;
  Buffer result({right_.origin(), elements, type_});
  return result.pack(0, right, bytes);
}

}  // namespace cepheus::ompi
