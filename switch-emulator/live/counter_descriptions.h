// What each counter of a fabric counts, for whoever looks at them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cepheus::live {

// A table for people, by where they are counted.
std::string describe_counters(bool colour);
// {"drop_ttl": "time to live used up: a routing loop", ...}
nlohmann::json counter_descriptions();

}  // namespace cepheus::live
