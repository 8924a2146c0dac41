// Readings of an object as JSON: own keys, and "counters" with those that are not 0.
#pragma once

#include <nlohmann/json.hpp>

#include "switch-emulator/live/readings.h"

namespace cepheus::live {

template <typename Object>
void write_readings(const Object& object, nlohmann::json& out) {
  for (const Reading<Object>& reading : readings<Object>()) {
    if (reading.set == nullptr) continue;
    const std::string key(reading.name);
    const std::uint64_t value = reading.of(object);
    if (reading.listing == Listing::kOwn) {
      out[key] = value;
    } else if (nlohmann::json& counters = out["counters"]; value != 0) {
      counters[key] = value;
    } else if (counters.is_null()) {
      counters = nlohmann::json::object();
    }
  }
}

// Throws nlohmann::json::exception if a key is missing; unknown ones are skipped.
template <typename Object>
void read_readings(const nlohmann::json& in, Object& object) {
  for (const Reading<Object>& reading : readings<Object>()) {
    if (reading.set == nullptr) continue;
    const std::string key(reading.name);
    const bool is_own = reading.listing == Listing::kOwn;
    reading.set(object, is_own ? in.at(key).template get<std::uint64_t>()
                               : in.at("counters").value(key, std::uint64_t{0}));
  }
}

}  // namespace cepheus::live
