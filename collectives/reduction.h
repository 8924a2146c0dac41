// One MPI_Barrier, MPI_Allreduce, MPI_Reduce or MPI_Allgather, or its non-blocking form, from its
// call to its end.
//
// All ranks get all contributions ("blocks", in MPI's packed form), and each reduces them itself, in
// pairs by rank. If they are long, each rank reduces some elements of all blocks, in the same pairs. So
// any operation and type is served, and the result has the same bits on all ranks and on every path. The
// library arithmetic/ has MPI's operations on integers, floats and doubles (operators.h), and the host's
// Operator has all others.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "arithmetic/combine.h"
#include "collectives/core/collective.h"
#include "collectives/core/parameters.h"
#include "collectives/turn.h"
#include "collectives/units/payload.h"

namespace cepheus::coll {

// The same on all ranks of a call.
struct ReductionShape {
  Collective collective;       // not kBcast
  std::size_t block;           // bytes of a rank's contribution in packed form; MPI_Barrier: 0
  int root = 0;                // of MPI_Reduce
  bool is_by_program = false;  // it applies an operation of the program's
  std::size_t element = 1;     // bytes of one of the block's elements, which an operation combines

  // It has no data, so it is complete at once, as MPI allows.
  bool is_empty() const { return block == 0 && collective != Collective::kBarrier; }
};

inline bool is_within(const ReductionShape& shape, std::size_t bytes, int ranks) {
  return shape.block <= bytes / static_cast<std::size_t>(ranks);
}

// All ranks' blocks together are few enough bytes for a gather.
inline bool is_short(const ReductionShape& shape, int ranks) {
  return is_within(shape, parameters().gathered_bytes(), ranks);
}

// They are too many for that, and few enough to be ours. No rank needs all of them.
inline bool is_long(const ReductionShape& shape, int ranks) {
  const bool is_reduced =
      shape.collective == Collective::kAllreduce || shape.collective == Collective::kReduce;
  return is_reduced && !is_within(shape, parameters().most_gathered, ranks) &&
         is_within(shape, parameters().reduction_bytes(), ranks);
}

// Behind a gather each rank applies the operation to the blocks of all ranks, and MPI's own function to log2(ranks) of
// them. MPI's operations take nanoseconds. An interpreter's takes microseconds, and no comparison of
// ways finds that, because all of ours have the same step. With 32 ranks a compiled function of 0.1 us
// costs 2.6 us more, which the network saves again.
inline constexpr int kMostRanksByProgram = 32;
inline bool is_applied_seldom(const ReductionShape& shape, int ranks) {
  return !shape.is_by_program || ranks <= kMostRanksByProgram;
}

// It may be ours on a communicator of `ranks` ranks. All of them find the same.
inline bool may_be_ours(const ReductionShape& shape, int ranks) {
  return is_long(shape, ranks) || (is_short(shape, ranks) && is_applied_seldom(shape, ranks));
}

// This rank's part. The contribution is read once, when the call has its turn; the result is written
// later: once, at the end, unless the call is long. So both may be the same memory, as MPI_IN_PLACE has
// it: the host gives the memory that MPI reads and writes then.
struct ReductionData {
  Payload contribution{nullptr, 0};  // of `block` bytes
  // `block` bytes; MPI_Allgather: as many for each rank, in their order; MPI_Reduce: at the root.
  // Else none.
  Payload result{nullptr, 0};
  Operator* op = nullptr;  // of MPI_Allreduce and MPI_Reduce; it outlives the call
  // ... in its place, if the library has the operation on this type: `block` is whole values then.
  std::optional<arithmetic::Combiner> combiner{};
};

struct Reduction : Turn {
  // `done`: of a non-blocking one, runs once it is complete, with nothing held. The reduction is the
  // caller's again then.
  Reduction(const ReductionShape& what, ReductionData with,
            void (*done_callback)(Reduction*, Code) = nullptr)
      : Turn(what.collective, done_callback == nullptr),
        shape(what),
        data(std::move(with)),
        done(done_callback) {}

  void finish() override { done(this, outcome); }
  Code error() const override { return data.result.error(); }
  CallReport::Times times() const override { return {began, shape.block, shape.root}; }

  const ReductionShape shape;
  ReductionData data;
  void (*const done)(Reduction*, Code);
};

}  // namespace cepheus::coll
