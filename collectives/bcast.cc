#include "collectives/bcast.h"

#include "collectives/core/parameters.h"

namespace cepheus::coll {

bool ibcast_is_served(CommunicatorState& state, size_t bytes, int root) {
  if (state.may_serve(bytes)) return true;
  state.count_saved(false, {CallReport::begin_call(), bytes, root});
  return false;
}

bool bcast_init_is_served(CommunicatorState& state, int root) {
  const bool is_ordered = parameters().ordered_starts != 0;
  if (is_ordered && state.may_serve_request()) return true;
  state.count_saved(
      false, {0, 0, root},
      is_ordered ? "" : "a persistent broadcast; " + host::parameter("ordered_starts") + " is 0");
  return false;
}

}  // namespace cepheus::coll
