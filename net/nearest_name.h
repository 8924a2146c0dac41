// "did you mean": the known name closest to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cepheus::net {

// The known name that is fewest single-letter edits away, or an empty view if none is closer than
// half of `name`.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);

// " (did you mean 'rate'?)", or nothing if no known name is near.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> known);

}  // namespace cepheus::net
