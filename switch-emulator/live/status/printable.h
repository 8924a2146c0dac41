// Text from elsewhere (names in programs, topology files and answers), made safe for a terminal or
// for JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "wire/printable.h"

namespace cepheus::live {

using wire::printable;

// "a, b, c, d and 3 more": the first four.
std::string first_few(const std::vector<std::string>& texts, std::string_view separator = ", ");

// The document as ASCII text without a final line break, on one line if `indent` is negative. Never
// fails: a byte that is not UTF-8 becomes U+FFFD.
std::string json_text(const nlohmann::json& document, int indent = -1);

}  // namespace cepheus::live
