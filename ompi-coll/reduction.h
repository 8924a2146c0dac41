// The arguments of MPI_Allreduce, MPI_Reduce and MPI_Allgather as Open MPI passes them, and this
// rank's part of such a call: its buffers, and Open MPI's operation on packed blocks.
#pragma once

#include "collectives/reduction_call.h"
#include "ompi-coll/buffer.h"
#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

// An operation, and the communicator of its call.
struct OperationOn {
  ompi_op_t* op;
  ompi_communicator_t* comm;
};

using ReductionCall = coll::ReductionCall<ompi_datatype_t*, OperationOn>;

inline ReductionCall barrier_call() { return {}; }
ReductionCall allreduce_call(const void* send, void* receive, int count, ompi_datatype_t* type,
                             ompi_op_t* op, ompi_communicator_t* comm);
ReductionCall reduce_call(const void* send, void* receive, int count, ompi_datatype_t* type,
                          ompi_op_t* op, int root, ompi_communicator_t* comm);
ReductionCall allgather_call(const void* send, int send_count, ompi_datatype_t* send_type,
                             void* receive, int receive_count, ompi_datatype_t* receive_type,
                             ompi_communicator_t* comm);

// Open MPI calls MPI_Iallreduce itself while it duplicates a communicator by MPI_Comm_idup, from its
// progress, at a time of each rank's own. Multicast needs one order on all ranks. These calls are of
// one int, for the maximum or the minimum. Open MPI's function has the library's bits for them.
bool may_be_open_mpis_own(const ReductionCall& call);

class Operation final : public coll::Operator {
 public:
  Operation(const OperationOn& operation, const Elements& operand);

  coll::Code apply(const void* left, void* right, std::size_t elements) override;

 private:
  coll::Code reduce(const void* left, void* right, std::size_t elements) const;
  coll::Code apply_unpacked(const void* left, void* right, std::size_t elements);

  OperationOn operation_;
  ompi_datatype_t* type_;
  bool is_dense_;                     // a packed block is one in memory, too
  coll::OperandMemory left_, right_;  // else
};

using ReductionMemory = coll::ReductionMemory<ReductionCall, Buffer, Operation>;

}  // namespace cepheus::ompi
