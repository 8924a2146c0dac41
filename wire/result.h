// Errors as values: Result<T> is a T or an Error whose code says what the caller can do.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace cepheus::wire {

enum class ErrorCode {
  kInvalid,      // the request itself is wrong: do not repeat it
  kAgain,        // repeat it after progress
  kUnavailable,  // the fabric or device can't serve: fall back
  kRefused,      // the other side refused, with a reason: fall back
  kTimedOut,     // no answer in time: fall back, or rebuild later
  kFailed,       // failed in operation: rebuild from fresh objects
};

struct Error {
  ErrorCode code;
  std::string text;  // lower case, names the remedy
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string text) {
  return tl::unexpected<Error>(Error{code, std::move(text)});
}

inline tl::unexpected<Error> invalid(std::string text) {
  return fail(ErrorCode::kInvalid, std::move(text));
}
inline tl::unexpected<Error> unavailable(std::string text) {
  return fail(ErrorCode::kUnavailable, std::move(text));
}
// ... because a system call has failed.
inline tl::unexpected<Error> call_failed(const std::string& what) {
  return unavailable(what + ": " + std::strerror(errno));
}

}  // namespace cepheus::wire
