#include "libmcast/engine/failure.h"

#include <array>

namespace cepheus::mcast {

mcast_status_t status_of(wire::ErrorCode code) {
  constexpr std::array kStatuses{MCAST_ERR_INVALID,  MCAST_ERR_AGAIN,     MCAST_ERR_NO_DEVICE,
                                 MCAST_ERR_REJECTED, MCAST_ERR_TIMED_OUT, MCAST_ERR_FABRIC};
  static_assert(kStatuses.size() == static_cast<std::size_t>(wire::ErrorCode::kFailed) + 1);
  return kStatuses[static_cast<std::size_t>(code)];
}

std::string milliseconds_text(wire::Duration d) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()) + " ms";
}

}  // namespace cepheus::mcast
