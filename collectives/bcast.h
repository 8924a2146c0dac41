// MPI_Bcast and MPI_Ibcast, as a host enters them.
#pragma once

#include "collectives/communicator_state.h"
#include "collectives/core/parameters.h"

namespace cepheus::coll {

// A blocking broadcast of `bytes` from rank `root`. If it may be ours, the host's `prepare()` returns
// the reason why it is not, the same on all ranks, or "". `payload()` makes its Payload, if it is
// needed; `saved()` serves it by the host's own algorithm. Each runs at most once.
template <typename Prepare, typename MakePayload, typename Saved>
Code bcast(CommunicatorState& state, size_t bytes, int root, Prepare prepare, MakePayload payload,
           Saved saved) {
  if (bytes == 0) return Code::kDone;
  const bool may_serve = state.may_serve(bytes);
  const std::string why_not = may_serve ? prepare() : "";
  if (state.has_ended_broadcasts()) return Code::kFailed;
  if (!may_serve || !why_not.empty()) {
    const std::int64_t began = CallReport::begin_call();
    const Code rc = saved();
    state.count_saved(true, {began, bytes, root}, why_not);
    return rc;
  }
  Broadcast broadcast(payload(), root);
  Code rc = state.serve(broadcast);
  if (rc != Code::kNotServed) return rc;
  rc = saved();
  state.count_saved(broadcast);
  return rc;
}

// Whether a non-blocking broadcast of more than no bytes is ours. If not, the host's own algorithm
// serves it.
inline bool ibcast_is_served(CommunicatorState& state, size_t bytes, int root) {
  if (state.may_serve(bytes) || state.has_ended_broadcasts()) return true;
  state.count_saved(false, {CallReport::begin_call(), bytes, root});
  return false;
}

// MPI-4.1 6.13 lets ranks start persistent collectives in different orders, also around other
// collectives. Multicast needs one order on all ranks, so it serves them only if the user promises
// that order; then each start is a non-blocking broadcast.
inline bool bcast_init_is_served(CommunicatorState& state, int root) {
  const bool is_ordered = parameters().ordered_starts != 0;
  if (is_ordered && state.may_serve_request()) return true;
  state.count_saved(
      false, {0, 0, root},
      is_ordered ? "" : "a persistent broadcast; " + host::parameter("ordered_starts") + " is 0");
  return false;
}

}  // namespace cepheus::coll
