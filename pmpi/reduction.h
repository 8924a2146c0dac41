// MPI's arguments of a reduction, and this rank's part of it: its buffers, and MPI's operation on
// packed blocks.
#pragma once

#include <optional>

#include "collectives/reduction_call.h"
#include "pmpi/buffer.h"
#include "pmpi/communicator.h"
#include "pmpi/mpi_abi.h"

namespace cepheus::pmpi {

// As the program passes them. MPI_Allreduce and MPI_Reduce have one count and one type.
struct ReductionArguments {
  coll::Collective collective;
  const void* send = nullptr;
  Count send_count = 0;
  Datatype send_type = kDatatypeNull;
  void* receive = nullptr;
  Count receive_count = 0;
  Datatype receive_type = kDatatypeNull;
  Op op = kOpNull;
  int root = 0;
};

using ReductionCall = coll::ReductionCall<Datatype, Op>;

// Nothing: the arguments are not those of a call that may be ours. Either all ranks find that, as
// without elements, or MPI reports an error of this rank. If a call's shape is not ours, the result
// has the shape alone, and nothing else was looked at.
std::optional<ReductionCall> call_of(const ReductionArguments& arguments,
                                     const Communicator& communicator);

class Operation final : public coll::Operator {
 public:
  Operation(Op op, const Elements& operand);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation();

  // The program may free its operation and its type from now on. The operation still gets that type.
  void hold();

  coll::Code apply(const void* left, void* right, std::size_t elements) override;

 private:
  coll::Code apply_unpacked(const void* left, void* right, std::size_t elements);

  Op op_;
  Elements operand_;
  bool is_dense_;  // a packed block is one in memory, too
  bool holds_ = false;
  bool has_type_ = true;              // MPI keeps it
  Datatype row_ = kDatatypeNull;      // keeps the type
  coll::OperandMemory left_, right_;  // of an operation on a type with gaps
};

using ReductionMemory = coll::ReductionMemory<ReductionCall, Buffer, Operation>;

}  // namespace cepheus::pmpi
