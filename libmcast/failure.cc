#include "libmcast/failure.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cepheus::mcast {
namespace {

thread_local std::array<char, 512> last_text{};

}  // namespace

std::string errno_text(std::string_view what, int error) {
  std::array<char, 128> buffer{};
  // GNU strerror_r: the text may or may not be in the buffer.
  const char* text = strerror_r(error, buffer.data(), buffer.size());
  return std::string(what) + ": " + text;
}

const char* last_error() { return last_text.data(); }

mcast_status_t set_last_error(mcast_status_t status, std::string_view text) {
  const std::size_t length = std::min(text.size(), last_text.size() - 1);
  std::copy_n(text.begin(), length, last_text.begin());
  last_text[length] = '\0';
  return status;
}

}  // namespace cepheus::mcast
