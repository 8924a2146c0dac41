#include "collectives/bcast.h"

#include "collectives/core/parameters.h"

namespace cepheus::coll {

bool ibcast_is_served(CommunicatorState& state, size_t bytes, int root) {
  if (state.may_serve(bytes)) return true;
  state.count_saved(false, {ReportFile::instance().begin_call(), bytes, root});
  return false;
}

// A request that is started again and again earns a group.
bool bcast_init_is_served(CommunicatorState& state, int root) {
  if (parameters().ordered_starts != 0 && state.may_serve(CommunicatorState::kMany)) return true;
  state.count_saved(false, {0, 0, root});
  return false;
}

}  // namespace cepheus::coll
