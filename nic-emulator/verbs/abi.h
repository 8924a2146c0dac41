// Shared by every function of the verbs API: linkage, and a guard that lets no exception out.
#pragma once

#include <cxxabi.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "nic-emulator/verbs/cancellation.h"
#include "wire/result.h"

// libibverbs' header wraps these names in macros; we define the functions behind them.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define CEPHEUS_EXPORT extern "C" __attribute__((visibility("default")))

namespace cepheus::verbs {

// The errno for a verbs program, from Error::code.
inline int to_errno(wire::ErrorCode code) {
  // In the enumerators' order. A full queue is ENOMEM, as in providers' post_send.
  constexpr std::array kErrnos{EINVAL, ENOMEM, ENODEV, EBUSY, ETIMEDOUT, EIO};
  static_assert(kErrnos.size() == static_cast<std::size_t>(wire::ErrorCode::kFailed) + 1);
  return kErrnos[static_cast<std::size_t>(code)];
}

// For functions that return an object: null with errno.
inline std::nullptr_t refuse(int error) {
  errno = error;
  return nullptr;
}

// For functions that return an errno: also sets it, as libibverbs does.
inline int refuse_call(int error) {
  errno = error;
  return error;
}

// For functions that return -1 with errno.
inline int refuse_query(int error) {
  errno = error;
  return -1;
}

// Answers a query in the caller's structure, which may be shorter or longer than ours: fields that
// we don't know are cleared.
template <typename Answer>
void copy_answer(const Answer& answer, void* out, std::size_t size) {
  const std::size_t known = std::min(size, sizeof answer);
  std::memcpy(out, &answer, known);
  std::memset(static_cast<char*>(out) + known, 0, size - known);
}

// Runs the body of an exported function; a failed allocation becomes ENOMEM. The thread is not
// cancelled in it.
template <typename Body>
auto guarded(Body&& body) -> decltype(body()) {
  const Uncancelled uncancelled;
  int error = EIO;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    error = ENOMEM;
  } catch (const abi::__forced_unwind&) {
    throw;  // a signal handler has called pthread_exit
  } catch (...) {
    // std::system_error of a lock or a thread: the process lacks a resource.
  }
  errno = error;
  if constexpr (std::is_pointer_v<decltype(body())>) {
    return nullptr;
  } else {
    return static_cast<decltype(body())>(error);
  }
}

}  // namespace cepheus::verbs
