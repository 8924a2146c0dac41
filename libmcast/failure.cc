#include "libmcast/failure.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cepheus::mcast {
namespace {

thread_local std::array<char, 512> last_text{};

}  // namespace

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

std::string errno_text(std::string_view what, int error) {
  std::array<char, 128> buffer{};
  // GNU strerror_r: the text may or may not be in the buffer.
  const char* text = strerror_r(error, buffer.data(), buffer.size());
  return std::string(what) + ": " + text;
}

std::string milliseconds_text(wire::Duration d) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()) + " ms";
}

const char* last_error() { return last_text.data(); }

mcast_status_t set_last_error(mcast_status_t status, std::string_view text) {
  const std::size_t length = std::min(text.size(), last_text.size() - 1);
  std::copy_n(text.begin(), length, last_text.begin());
  last_text[length] = '\0';
  return status;
}

}  // namespace cepheus::mcast
