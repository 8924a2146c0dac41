// For tests: readings by their names.
#pragma once

#include <stdexcept>
#include <string>

#include "switch-emulator/live/status/readings.h"

namespace cepheus::live {

// Throws if there is no reading of that name.
template <typename Object>
std::uint64_t counter(const Object& object, std::string_view name) {
  for (const Reading<Object>& reading : readings<Object>()) {
    if (reading.name == name) return reading.of(object);
  }
  throw std::out_of_range(std::string(name));
}

}  // namespace cepheus::live
