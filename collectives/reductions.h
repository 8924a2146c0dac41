// MPI_Barrier, MPI_Allreduce, MPI_Reduce, MPI_Allgather and their non-blocking forms, as a host
// enters them.
//
// The collective and the number of bytes decide alone whether a call is ours. So all ranks decide
// alike, whatever the operation, the type or the memory is. If the network can't serve a call that is
// ours, our own messages between ranks do. It is given back only if it may be saved (collective.h)
// and all ranks have agreed on that, or, if it is blocking, where the ranks' places rule the network out.
#pragma once

#include <string>

#include "collectives/communicator_state.h"
#include "collectives/reduction.h"

namespace cepheus::coll {

// A blocking call. If it may be ours, the host's `prepare()` returns the reason why it is not, the
// same on all ranks, or "". `data()` makes its ReductionData, if it is needed; `saved()` serves it by
// the host's own algorithm. Each runs at most once.
template <typename Prepare, typename MakeData, typename Saved>
Code reduction(CommunicatorState& state, const ReductionShape& shape, Prepare prepare,
               MakeData data, Saved saved) {
  if (shape.is_empty()) return Code::kDone;
  const bool may_serve = state.may_serve(shape);
  const std::string why_not = may_serve ? prepare() : "";
  if (may_serve && why_not.empty()) {
    Reduction own(shape, data());
    const Code served = state.serve(own);
    if (served != Code::kNotServed) return served;
    const Code rc = saved();
    state.count_saved(own);
    return rc;
  }
  const std::int64_t began = CallReport::begin_call();
  const Code rc = saved();
  state.count_saved(shape, true, began, why_not);
  return rc;
}

// Whether a non-blocking call, not an empty one, is ours: then the host starts a Reduction by
// CommunicatorState::start(). If not, the host's own algorithm serves it.
inline bool ireduction_is_served(CommunicatorState& state, const ReductionShape& shape) {
  if (state.may_serve(shape)) return true;
  state.count_saved(shape, false, CallReport::begin_call());
  return false;
}

}  // namespace cepheus::coll
