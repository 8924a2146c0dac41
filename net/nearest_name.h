// "did you mean": the known name closest to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cepheus::net {

// " (did you mean 'rate'?)", of the known name that is fewest single-letter edits away; nothing if
// none is closer than half of `name`.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> known);

}  // namespace cepheus::net
