// What each reading of a fabric is (readings.h), in words.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cepheus::live {

// A table for people, by scope.
std::string describe_counters(bool colour);
// {"drop_ttl": "time to live used up: a routing loop", ...}
nlohmann::json counter_descriptions();

}  // namespace cepheus::live
