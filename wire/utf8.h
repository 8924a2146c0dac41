// One character of a text in UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <string_view>

namespace cepheus::wire {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: the text does not start with a character
};

// The first character of a non-empty text. Surrogates, codes beyond U+10FFFF and overlong forms are
// not characters.
Character first_character(std::string_view text);

}  // namespace cepheus::wire
