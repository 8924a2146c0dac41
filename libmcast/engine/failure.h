// A failure: the status for the caller of the C API, and a text.
#pragma once

#include <mcast/query.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "wire/result.h"
#include "wire/types.h"

namespace cepheus::mcast {

struct Failure {
  mcast_status_t status;
  std::string text;  // lower case, names the remedy
};

template <typename T>
using Expected = tl::expected<T, Failure>;

inline tl::unexpected<Failure> fail(mcast_status_t status, std::string text) {
  return tl::unexpected<Failure>(Failure{status, std::move(text)});
}

mcast_status_t status_of(wire::ErrorCode code);
inline Failure failure_of(const wire::Error& error) { return {status_of(error.code), error.text}; }
// "5000 ms".
std::string milliseconds_text(wire::Duration d);

}  // namespace cepheus::mcast
