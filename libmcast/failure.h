// What went wrong inside libmcast: the status that the caller of the C API gets and the text of
// mcast_last_error().
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "libmcast/include/mcast/mcast.h"
#include "wire/result.h"
#include "wire/types.h"

namespace cepheus::mcast {

struct Failure {
  mcast_status_t status;
  std::string text;  // lower case, names what to do next
};

template <typename T>
using Expected = tl::expected<T, Failure>;

inline tl::unexpected<Failure> fail(mcast_status_t status, std::string text) {
  return tl::unexpected<Failure>(Failure{status, std::move(text)});
}

mcast_status_t status_of(wire::ErrorCode code);
inline Failure failure_of(const wire::Error& error) { return {status_of(error.code), error.text}; }
// "what: the errno's text".
std::string errno_text(std::string_view what, int error);
// "5000 ms".
std::string milliseconds_text(wire::Duration d);

// The calling thread's last error; never allocates, so that it works when memory has run out.
const char* last_error();
mcast_status_t set_last_error(mcast_status_t status, std::string_view text);
inline mcast_status_t set_last_error(const Failure& failure) {
  return set_last_error(failure.status, failure.text);
}

}  // namespace cepheus::mcast
