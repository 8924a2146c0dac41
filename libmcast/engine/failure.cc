#include "libmcast/engine/failure.h"

namespace cepheus::mcast {

mcast_status_t status_of(wire::ErrorCode code) {
  switch (code) {
    case wire::ErrorCode::kInvalid:
      return MCAST_ERR_INVALID;
    case wire::ErrorCode::kAgain:
      return MCAST_ERR_AGAIN;
    case wire::ErrorCode::kUnavailable:
      return MCAST_ERR_NO_DEVICE;
    case wire::ErrorCode::kRefused:
      return MCAST_ERR_REJECTED;
    case wire::ErrorCode::kTimedOut:
      return MCAST_ERR_TIMED_OUT;
    case wire::ErrorCode::kFailed:
      break;
  }
  return MCAST_ERR_FABRIC;
}

std::string milliseconds_text(wire::Duration d) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()) + " ms";
}

}  // namespace cepheus::mcast
