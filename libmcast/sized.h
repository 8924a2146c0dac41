// Structures of the C API that may grow: `struct_size` in front is the size that the caller knows.
//
// A newer library takes its own defaults for fields that an older caller lacks. It writes no byte
// beyond the caller's size. A newer caller may set a field that an older library does not know.
// That is an error, since the library would ignore it. A new field is behind the structure's former
// size, not in its padding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "libmcast/failure.h"

namespace cepheus::mcast {

// The fields of a structure's first version, which every caller knows. A structure that grows gets
// a specialisation with its earlier size.
template <typename T>
inline constexpr std::size_t kFirstSize = sizeof(T);

// More than any structure has: a size beyond it was never set.
inline constexpr std::size_t kLargestSize = 4096;

template <typename T>
Expected<void> check_size(const T& structure) {
  const std::size_t size = structure.struct_size;
  if (size >= kFirstSize<T> && size <= kLargestSize) return {};
  return fail(MCAST_ERR_INVALID, "struct_size is " + std::to_string(size) +
                                     ", and the first version of this structure has " +
                                     std::to_string(kFirstSize<T>) +
                                     " bytes: initialise it with its _INIT macro");
}

// The caller's fields over the defaults; null: the defaults.
template <typename T>
Expected<T> read_sized(const T* given, T defaults) {
  if (given == nullptr) return defaults;
  if (auto sized = check_size(*given); !sized) return tl::unexpected(sized.error());
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  const bool sets_unknown =
      given->struct_size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + given->struct_size,
                                                    [](unsigned char byte) { return byte != 0; });
  if (sets_unknown) {
    return fail(MCAST_ERR_INVALID,
                "a parameter is set that this version of libmcast lacks: update it");
  }
  std::memcpy(&defaults, given, std::min(given->struct_size, sizeof(T)));
  return defaults;
}

// Writes the part of `value` that the caller knows. Its size stays, and so do bytes that this
// version does not know.
template <typename T>
void write_sized(T value, T& out) {
  value.struct_size = out.struct_size;
  std::memcpy(&out, &value, std::min(out.struct_size, sizeof(T)));
}

}  // namespace cepheus::mcast
