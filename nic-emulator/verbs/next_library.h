// The functions that the preload library replaces: libibverbs' own, for devices of others.
#pragma once

#include <cerrno>
#include <type_traits>

namespace cepheus::verbs {

// The next definition of `name` behind this library, or libibverbs' if the program can't see that
// (a plug-in opened it for itself alone). Null: there is none.
void* next_definition(const char* name);

// Calls it. Without one: null with errno, or the error as ibv functions return it.
template <typename Function, typename... Args>
auto call_next(const char* name, Args... args) {
  using Result = std::invoke_result_t<Function*, Args...>;
  auto* const function = reinterpret_cast<Function*>(next_definition(name));
  if constexpr (std::is_void_v<Result>) {
    if (function != nullptr) function(args...);
  } else {
    if (function != nullptr) return function(args...);
    errno = ENOSYS;
    if constexpr (std::is_pointer_v<Result>) {
      return Result{nullptr};
    } else {
      return static_cast<Result>(ENOSYS);
    }
  }
}

}  // namespace cepheus::verbs

// For the first line of a function of libibverbs: passes calls about other devices to the next
// definition.
#define CEPHEUS_PASS_ON_UNLESS_OURS(object, function, ...) \
  if (!is_ours(object)) return cepheus::verbs::call_next<decltype(function)>(#function, __VA_ARGS__)
