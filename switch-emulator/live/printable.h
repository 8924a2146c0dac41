// Text from elsewhere (names in programs, topology files and answers), made fit for where it goes:
// a terminal, or JSON.
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

// The document as ASCII text without a line break at its end, on one line if `indent` is negative.
// Never fails: a byte that is no UTF-8 becomes U+FFFD.
std::string json_text(const nlohmann::json& document, int indent = -1);

}  // namespace cepheus::live
