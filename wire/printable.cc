#include "wire/printable.h"

#include <cstdio>

#include "wire/utf8.h"

namespace cepheus::wire {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) ||  // C0, DEL, C1
         code == 0x2028 || code == 0x2029 ||              // line and paragraph separators
         code == 0x200E || code == 0x200F || code == 0x061C || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);  // direction of writing
}

std::string escaped(char32_t code) {
  char text[16];
  std::snprintf(text, sizeof text, code <= 0xFF ? "\\x%02x" : "\\u%04x",
                static_cast<unsigned>(code));
  return text;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_character(text);
    if (next.bytes == 0) {
      shown += kReplacement;
    } else if (is_control(next.code)) {
      shown += escaped(next.code);
    } else {
      shown += text.substr(0, next.bytes);
    }
    text.remove_prefix(next.bytes == 0 ? 1 : next.bytes);
  }
  return shown;
}

}  // namespace cepheus::wire
